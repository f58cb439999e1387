"""raison serve, 200 clients for two minutes: is anything lost, wrong, or somebody starved, and does memory grow?

Every answer is compared with what raison.explain gives for that text alone. Nothing is kept (--keep 0), so that every
answer is computed. One client asks sixteen times as much as the others, and one in eight requests is left unfinished.
"""

import random
import statistics
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from common import mixed_texts, save
from server import MODEL, Connection, Server, started

import raison

CLIENTS = 200
SECONDS = 120.0
GREEDY = 16
LEAVING = 8
METHODS = ("generic_attention", "deep_lift", "occlusion", "attn_lrp")
WEIGHTS = (6, 3, 1, 2)
CLOSE = {"rtol": 1e-3, "atol": 1e-4}

Expected = dict[tuple[str, str], list[float]]


@dataclass
class Client:
    """What one client saw."""

    name: str
    waited: list[float] = field(default_factory=list)
    wrong: int = 0
    lost: int = 0
    left: int = 0
    refused: int = 0
    furthest: float = 0.0
    """The largest difference of a score from the library's."""

    def work(self, port: int, expected: Expected, until: float) -> None:
        """Ask, wait for the answer, ask again."""
        rng, connection = random.Random(self.name), Connection(port, self.name.partition("#")[0])
        texts = sorted({text for _, text in expected})
        while time.monotonic() < until:
            method, text = rng.choices(METHODS, WEIGHTS)[0], rng.choice(texts)
            body = {"model": MODEL, "text": text, "method": method}
            if rng.randrange(LEAVING) == 0:
                connection.leave("/api/explain", body, rng.random())
                self.left += 1
                continue
            self._ask(connection, body, expected[method, text])

    def _ask(self, connection: Connection, body: dict[str, Any], scores: list[float]) -> None:
        began = time.monotonic()
        try:
            status, answer, headers = connection.post("/api/explain", body)
        except Exception as error:  # noqa: BLE001 - whatever it was, there is no answer
            sys.stderr.write(f"lost: {error!r}\n")
            self.lost += 1
            return
        if status == 429:
            self.refused += 1
            time.sleep(float(headers.get("retry-after", 1)))
            return
        self.waited.append(time.monotonic() - began)
        right = status == 200 and answer["text"] == body["text"] and len(answer["scores"]) == len(scores)
        if right:
            self.furthest = max(self.furthest, float(np.abs(np.array(answer["scores"]) - scores).max()))
        self.wrong += not (right and np.allclose(answer["scores"], scores, **CLOSE))


def expectations() -> Expected:
    """What the library gives for each text and method, one call for each."""
    model = raison.load(MODEL)
    texts = [text for text in mixed_texts(150, 3) if len(text.split()) <= 24][:24]
    return {
        (method, text): list(raison.explain(model, text, method, progress=False).scores)
        for method in METHODS
        for text in texts
    }


def watched(server: Server, until: float) -> list[float]:
    """Megabytes of the server, every second."""
    found = []
    while time.monotonic() < until:
        found.append(server.megabytes)
        time.sleep(1)
    return found


def main() -> None:
    """All clients at once; those of the greedy one have the same name."""
    expected = expectations()
    clients = [Client(f"c{number}") for number in range(CLIENTS - 1)]
    greedy = [Client(f"greedy#{number}") for number in range(GREEDY)]
    with started("--keep", "0", "--max-waiting", "512") as server:
        first = Connection(server.port, "first")
        for method in METHODS:
            assert first.post("/api/explain", {"model": MODEL, "text": "a first one", "method": method})[0] == 200
        before, until = server.megabytes, time.monotonic() + SECONDS
        everyone = [*clients, *greedy]
        threads = [threading.Thread(target=c.work, args=(server.port, expected, until)) for c in everyone]
        for thread in threads:
            thread.start()
        memory = watched(server, until)
        for thread in threads:
            thread.join()
        lines = [line for line in server.said if "mistake" in line or "Traceback" in line]
        assert not lines, lines
    counts = [len(client.waited) for client in clients]
    waits = [max(client.waited, default=SECONDS) for client in clients]
    rows: list[dict[str, object]] = [
        {"what": "clients, beside one that asks sixteen times at once", "value": len(clients)},
        {"what": "seconds", "value": SECONDS},
        {"what": "answers", "value": sum(len(client.waited) for client in everyone)},
        {"what": "answers a second", "value": sum(len(client.waited) for client in everyone) / SECONDS},
        {"what": "lost", "value": sum(client.lost for client in everyone)},
        {"what": "wrong", "value": sum(client.wrong for client in everyone)},
        {"what": "largest difference from the library's score", "value": max(client.furthest for client in everyone)},
        {"what": "refused (429)", "value": sum(client.refused for client in everyone)},
        {"what": "left by their clients", "value": sum(client.left for client in everyone)},
        {"what": "answers of a client, fewest", "value": min(counts)},
        {"what": "answers of a client, median", "value": statistics.median(counts)},
        {"what": "answers of a client, most", "value": max(counts)},
        {"what": "answers of the greedy client", "value": sum(len(client.waited) for client in greedy)},
        {"what": "seconds an answer took, median", "value": statistics.median(w for c in clients for w in c.waited)},
        {"what": "seconds an answer took, longest", "value": max(waits)},
        {"what": "MB before", "value": round(before)},
        {"what": "MB after a minute", "value": round(memory[len(memory) // 2])},
        {"what": "MB at the end", "value": round(memory[-1])},
        {"what": "MB at most", "value": round(max(memory))},
    ]
    save("serving_load", rows)


if __name__ == "__main__":
    main()
