"""raison serve, 10,000 hostile requests: does it crash, show where it happened, or give a file away?"""

import argparse
import json
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from queue import Empty, Queue

sys.path.insert(0, str(Path(__file__).parents[1]))

# Before torch is imported: it sets the number of torch's threads.
import tests.conftest  # noqa: F401  # isort: skip

from common import save
from server import MODEL, Server, started

from tests.hostile import Hostile, asked, post, requests, wrong
from tests.hostile_values import SECRET

AT_ONCE = 16
SLOW = 60
"""Connections that send a byte every few seconds meanwhile."""
HEAD = b"POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n"


class Results:
    """What came back."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.lock = threading.Lock()

    def add(self, hostile: Hostile, answer: bytes) -> None:
        """One answer."""
        with self.lock:
            self.statuses[answer[9:12].decode() or "closed"] += 1
            if trouble := wrong(answer):
                self.wrong.append(f"{trouble}: {hostile.kind}: {hostile.content[-300:]!r}")


def attack(port: int, queue: "Queue[Hostile]", results: Results) -> None:
    """Send what is left."""
    while True:
        try:
            hostile = queue.get_nowait()
        except Empty:
            return
        try:
            results.add(hostile, asked(port, hostile.content, 300))
        except OSError as error:
            results.add(Hostile(f"{hostile.kind}: {error!r}", hostile.content), b"HTTP/1.1 599 none\r\n\r\n")


def crawl(port: int, results: Results) -> None:
    """A request whose head, or whose body, comes a byte at a time."""
    for content in (HEAD[:60], HEAD + b'{"model"'):
        answer = asked(port, content, 60)
        results.add(Hostile("slow", content), answer)
        with results.lock:
            if answer and not answer.startswith((b"HTTP/1.1 408", b"HTTP/1.1 400")):
                results.wrong.append(f"a slow request got {answer[:40]!r}")


def run(server: Server, count: int) -> Results:
    """All of them, several at once, and the slow ones meanwhile."""
    queue: Queue[Hostile] = Queue()
    for hostile in requests(MODEL, count):
        queue.put(hostile)
    results = Results()
    works = [threading.Thread(target=attack, args=(server.port, queue, results)) for _ in range(AT_ONCE)]
    works += [threading.Thread(target=crawl, args=(server.port, results)) for _ in range(SLOW)]
    for work in works:
        work.start()
    for work in works:
        work.join()
    return results


def main() -> None:
    """A folder of runs from which links lead out, and a server that shows it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10_000)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as place:
        runs, secret = Path(place, "runs"), Path(place, "secret")
        for folder in (runs, secret):
            folder.mkdir()
        (secret / "run.json").write_text(json.dumps({"model": SECRET}))
        (runs / "linked").symlink_to(secret, target_is_directory=True)
        with started("--runs", str(runs)) as server:
            good = post("/api/explain", json.dumps({"model": MODEL, "text": "a dull plot"}).encode())
            first = asked(server.port, good, 300)
            before = server.megabytes
            results = run(server, count)
            after = server.megabytes
            again = asked(server.port, good, 300)
            assert server.process.poll() is None
    for line in results.wrong[:50]:
        print(line)
    said = [line for line in server.said if "mistake" in line or "Traceback" in line]
    log = "".join(server.said)
    print(log[max(0, log.find("Traceback") - 300) :][:4000] if said else "")
    rows: list[dict[str, object]] = [
        {"what": "requests", "value": count},
        {"what": "slow connections meanwhile", "value": 2 * SLOW},
        {"what": "answers that may not be (5xx, a traceback, a file, no line)", "value": len(results.wrong)},
        {"what": "mistakes in the server's log", "value": len(said)},
        {"what": "a good request before and after", "value": (first[9:12] + b", " + again[9:12]).decode()},
        *({"what": f"status {status}", "value": times} for status, times in sorted(results.statuses.items())),
        {"what": "MB before", "value": round(before)},
        {"what": "MB after", "value": round(after)},
    ]
    save("serving_hostile", rows)


if __name__ == "__main__":
    main()
