"""Explaining a file is killed (SIGKILL) at random moments, in every engine, and gone on with: is each row there once?

    python benchmarks/kills.py [--local 70] [--workers 20] [--ray 10] [--seed 0]

One round of an engine is one file: started, killed after a random part of its time, started again until it is complete.
Then its rows are compared with those of a run that nothing interrupted, all columns but the seconds. `local` kills the
one process; `workers` one of two processes, or the one that started them; `ray` an actor, or the driver.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import raison
from raison.core.model import LanguageModel
from raison.data.streams import Reading
from raison.runs.files.folder import read
from tests.tiny import TINY

RESULTS = Path(__file__).parent / "results"
WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
ROWS = 4500
"""More than as many shards as there are at least, so that shards have several parts."""
PARTS = {"workers": b"raison.jobs.workers", "ray": b"ray::MapWorker"}
"""What the command line of a process says that does the jobs, by the engine that starts it."""


@dataclass
class Bench:
    """The data, the model, what is expected, and what has happened so far."""

    place: Path
    chance: random.Random
    rows: int
    model: LanguageModel = field(init=False)
    expected: list[dict[str, object]] = field(init=False)
    seconds: float = field(init=False)

    def __post_init__(self) -> None:
        network, tokenizer = TINY["bert"]()
        network.save_pretrained(self.place / "model")
        tokenizer.save_pretrained(self.place / "model")
        self.model = raison.load(self.place / "model")
        texts = (" ".join(WORDS[row % 5 : row % 5 + 3 + row % 9]) for row in range(self.rows))
        # Some rows are blank, and are rejected.
        lines = [f"{row},{'' if row % 50 == 7 else text}\n" for row, text in enumerate(texts)]
        (self.place / "texts.csv").write_text("id,text\n" + "".join(lines))
        started = time.monotonic()
        self.explain(self.place / "whole")
        self.seconds = time.monotonic() - started
        self.expected = self.found(self.place / "whole")

    def explain(self, out: Path) -> None:
        raison.explain_file(self.model, self.place / "texts.csv", out, "random", reading=Reading(), progress=False)

    def found(self, out: Path) -> list[dict[str, object]]:
        """Every row without its seconds, and every rejected one."""
        written = read(out)
        assert written.is_complete
        assert not list((out / "work").iterdir())
        kept = ({name: value for name, value in row.items() if name != "seconds"} for row in written.rows())
        return [*kept, *map(json.loads, (out / "rejected.jsonl").read_text().splitlines())]


@dataclass
class Told:
    """What came of an engine."""

    engine: str
    kills: int = 0
    whole: int = 0
    wrong: int = 0
    busy: int = 0


def local(bench: Bench, kills: int) -> Told:
    """The process is a child that has everything loaded already, so that a kill costs no start."""

    def start(out: Path) -> int:
        with warnings.catch_warnings():
            # The child only works and ends.
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            status = 1
            try:
                bench.explain(out)
                status = 0
            finally:
                os._exit(status)
        return child

    def run(out: Path) -> bool:
        child = start(out)
        end, delay = None, bench.chance.uniform(0, 0.6 * bench.seconds)
        until = time.monotonic() + delay
        while end is None and time.monotonic() < until:
            pid, status = os.waitpid(child, os.WNOHANG)
            end = status if pid else None
            time.sleep(0.002)
        if end is None:
            os.kill(child, signal.SIGKILL)
            _, end = os.waitpid(child, 0)
        if end not in (0, signal.SIGKILL):
            raise RuntimeError(f"the work failed with {end}")
        return bool(end)

    return rounds(bench, Told("local"), kills, run)


def apart(engine: str) -> Callable[[Bench, int], Told]:
    """The same of an engine with processes of its own: one of them is killed, or the one that started them."""

    def several(bench: Bench, kills: int) -> Told:
        told = Told(engine)
        more = ["--workers", "2", *(["--engine", "ray"] if engine == "ray" else [])]

        def run(out: Path) -> bool:
            words = ["explain", "--data", str(bench.place / "texts.csv"), "--model", str(bench.place / "model")]
            words += ["--method", "random", "--out", str(out), "--json", *more]
            code = f"from raison.cli import main; import sys; sys.argv[1:] = {words!r}; main()"
            process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            target = process.pid if bench.chance.random() < 0.5 else None
            killed = _killed(process, target, engine, bench)
            _, said = process.communicate()
            if b"another process is at work" in said:
                told.busy += 1
                time.sleep(1)
                return bool(killed)
            if process.returncode not in (0, -signal.SIGKILL) and not killed:
                raise RuntimeError(said.decode()[-2000:])
            return bool(killed or process.returncode)

        return rounds(bench, told, kills, run)

    return several


def _killed(process: "subprocess.Popen[bytes]", target: int | None, engine: str, bench: Bench) -> bool:
    """Kill the process, or one of those that it started, at a random moment of their work; False if it ended before."""
    while process.poll() is None and not (workers := _workers(process.pid, engine)):
        time.sleep(0.05)
    until = time.monotonic() + bench.chance.uniform(0, 3 * bench.seconds)
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    workers = _workers(process.pid, engine)
    if process.poll() is not None or (target is None and not workers):
        return False
    os.kill(target or bench.chance.choice(workers), signal.SIGKILL)
    return True


def _workers(parent: int, engine: str) -> list[int]:
    """The processes below a process that do jobs."""
    children: dict[int, list[int]] = {}
    lines: dict[int, bytes] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            above = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            lines[int(place.name)] = (place / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        children.setdefault(above, []).append(int(place.name))
    found, left = [], [parent]
    while left:
        own = children.get(left.pop(), [])
        left += own
        found += [child for child in own if PARTS[engine] in lines.get(child, b"")]
    return found


def rounds(bench: Bench, told: Told, kills: int, run: Callable[[Path], bool]) -> Told:
    """Files one after the other, each started until it is complete. `run` says whether it was stopped."""
    while told.kills < kills:
        out = bench.place / f"{told.engine}-{told.whole + told.wrong}"
        while run(out):
            told.kills += 1
        if bench.found(out) == bench.expected:
            told.whole += 1
        else:
            told.wrong += 1
        print(told, flush=True)
        write(told)
    return told


def write(told: Told) -> None:
    """Put what is known so far of an engine into the table."""
    path = RESULTS / "kills.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[told.engine] = asdict(told)
    path.write_text(json.dumps(known, indent=1) + "\n")
    lines = ["# Kills at random moments", "", *(__doc__ or "").split("\n\n")[2].split("\n"), ""]
    lines += ["| engine | kills | files completed with every row once | files with a lost, doubled or other row |"]
    lines += ["| --- | ---: | ---: | ---: |"]
    lines += [f"| {one['engine']} | {one['kills']} | {one['whole']} | {one['wrong']} |" for one in known.values()]
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, count in (("local", 70), ("workers", 20), ("ray", 10), ("seed", 0), ("rows", ROWS)):
        parser.add_argument(f"--{name}", type=int, default=count)
    asked = parser.parse_args()
    engines = {"local": local, "workers": apart("workers"), "ray": apart("ray")}
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(Path(place), random.Random(asked.seed), asked.rows)
        found = [engines[name](bench, getattr(asked, name)) for name in engines if getattr(asked, name)]
    if any(one.wrong for one in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
