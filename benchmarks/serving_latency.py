"""raison serve, one user: from an edit to the first colours, which take an explanation and its view."""

import statistics
import time
from typing import Any

from common import mixed_texts, save
from server import MODEL, Connection, Server, started

EDITS = 40
METHODS = ("generic_attention", "deep_lift")


def edits() -> list[str]:
    """A sentence of 20 words, each time with another word exchanged."""
    words, spare = (" ".join(mixed_texts(9, seed)).split() for seed in (1, 2))
    found = []
    for number in range(EDITS):
        words[number % 20] = f"{spare[number % len(spare)]}{number}" if number % 3 == 0 else spare[number % len(spare)]
        found.append(" ".join(words[:20]))
    return found


def measured(server: Server, method: str) -> dict[str, object]:
    """Milliseconds of every edit; those on a processor do not depend on what else the machine does."""
    user, explaining, whole = Connection(server.port, "user"), [], []
    spent = server.processor_seconds
    for text in ["the first one takes longer", *edits()]:
        began = time.perf_counter()
        body: dict[str, Any] = {"model": MODEL, "text": text, "method": method}
        status, explanation, _ = user.post("/api/explain", body)
        assert status == 200, explanation
        explained = time.perf_counter()
        status, _, _ = user.post("/api/view", {"explanations": [explanation]})
        assert status == 200
        explaining.append(1000 * (explained - began))
        whole.append(1000 * (time.perf_counter() - began))
    deciles = statistics.quantiles(whole[1:], n=20)
    return {
        "method": method,
        "edits": EDITS,
        "on a processor, mean ms": 1000 * (server.processor_seconds - spent) / len(whole),
        "explanation, median ms": statistics.median(explaining[1:]),
        "colours, median ms": statistics.median(whole[1:]),
        "colours, 95 % below ms": deciles[-1],
    }


def main() -> None:
    """Every method in turn."""
    with started("--keep", "0") as server:
        save("serving_latency", [measured(server, method) for method in METHODS])


if __name__ == "__main__":
    main()
