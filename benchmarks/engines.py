"""A file explained by one process, by two, and by two actors of Ray: time, and memory of all processes together.

    python benchmarks/engines.py [--rows 6000] [--turns 3] [--engines one,workers,ray]

A tiny BERT and occlusion, one thread for each process, in turns. Time is that of the whole command on the clock, start
included. The rate is that of the middle half of the shards, when all processes have started and none has ended. Memory
is the highest sum of the processes' own shares (PSS). Medians over the turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.tiny import TINY

RESULTS = Path(__file__).parent / "results"
WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
ENGINES = {"one": (), "workers": ("--workers", "2"), "ray": ("--workers", "2", "--engine", "ray")}
NAMES = {"one": "one process", "workers": "two processes", "ray": "two actors of Ray"}


def below(parent: int) -> list[int]:
    """A process and all that it started."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            above = int(place.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(above, []).append(int(place.parent.name))
    found = [parent]
    for process in found:
        found += children.get(process, [])
    return found


def megabytes(process: int) -> float:
    """A process's memory; what several share is divided among them."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def measured(engine: str, place: Path, out: Path) -> dict[str, float]:
    """One run of the command."""
    words = ["explain", "--data", str(place / "texts.csv"), "--model", str(place / "model"), "--method", "occlusion"]
    words += ["--out", str(out), "--json", *ENGINES[engine]]
    code = f"from raison.cli import main; import sys; sys.argv[1:] = {words!r}; main()"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    started, peak = time.monotonic(), 0.0
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, env=environment)
    ended = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(1.0):
            peak = max(peak, sum(map(megabytes, below(process.pid))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    code_of_exit = process.wait()
    seconds = time.monotonic() - started
    ended.set()
    watcher.join()
    if code_of_exit:
        raise RuntimeError(f"{engine} ended with {code_of_exit}")
    return {"seconds": seconds, "rate": rate(out), "mb": peak}


def rate(out: Path) -> float:
    """Rows per second between the first and the third quarter of the shards, by when each was complete."""
    receipts = sorted((out / "receipts").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    middle = receipts[len(receipts) // 4 : 3 * len(receipts) // 4 + 1]
    rows = sum(json.loads(path.read_text())["rows"] for path in middle[1:])
    return rows / (middle[-1].stat().st_mtime - middle[0].stat().st_mtime)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--engines", default="one,workers,ray")
    asked = parser.parse_args()
    engines = asked.engines.split(",")
    found: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        network, tokenizer = TINY["bert"]()
        network.save_pretrained(place / "model")
        tokenizer.save_pretrained(place / "model")
        texts = (" ".join(WORDS[row % 5 : row % 5 + 3 + row % 9]) for row in range(asked.rows))
        (place / "texts.csv").write_text("text\n" + "".join(f"{text}\n" for text in texts))
        for turn in range(asked.turns):
            for engine in engines:
                found[engine].append(measured(engine, place, place / f"{engine}-{turn}"))
                print(engine, json.dumps(found[engine][-1]), flush=True)
    load = os.getloadavg()[0]
    lines = ["# Engines", "", *(__doc__ or "").split("\n\n")[2].split("\n")]
    lines += [f"{asked.rows:,} rows, {asked.turns} turns; {os.cpu_count()} cores; load of the machine {load:.0f}.", ""]
    lines += ["| | time (s) | rows/s | times the rate of one process | memory (MB) |"]
    lines += ["| --- | ---: | ---: | ---: | ---: |"]
    rates = {engine: statistics.median(run["rate"] for run in runs) for engine, runs in found.items()}
    for engine, runs in found.items():
        seconds, peak = (statistics.median(run[name] for run in runs) for name in ("seconds", "mb"))
        times = f"{rates[engine] / rates['one']:.2f}" if "one" in rates else ""
        lines.append(f"| {NAMES[engine]} | {seconds:,.0f} | {rates[engine]:,.0f} | {times} | {peak:,.0f} |")
    (RESULTS / "engines.json").write_text(json.dumps(found, indent=1) + "\n")
    (RESULTS / "engines.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
