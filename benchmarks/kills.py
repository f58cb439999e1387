"""Explaining a file is killed (SIGKILL) at random moments, in every engine, and gone on with: is each row there once?

    python benchmarks/kills.py [--local 60] [--workers 16] [--shard 14] [--ray 10] [--cite 8] [--cite_ray 4]

One round of an engine is one file: started, killed after a random part of its time, started again until it is complete.
Then its rows are compared with those of a run that nothing interrupted, all columns but the seconds. `local` kills the
one process; `workers` one of two processes, or the one that started them; `shard` one of two processes with a share
each; `ray` an actor, the driver, or the process of the node. `cite, workers` and `cite, ray` have questions whose
answers are cited. Counts are added to those of earlier runs (results/kills.json).
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
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import raison
from raison.data.streams import Reading
from raison.explaining.files import survey
from raison.models.adapters.writing.writer import Writer
from raison.runs.files.folder import SUMMARY, read
from tests.tiny import TINY, build_language_model

RESULTS = Path(__file__).parent / "results"
WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
ROWS, TOGETHER = 700, 8
"""Of a part; as many parts as two for each shard, so that a shard is left half done."""
QUESTIONS, FEW = 120, 10
"""Rows to cite, and shards of them, so that a shard has several parts."""
PARTS = {"workers": b"raison.jobs.workers", "ray": b"ray::MapWorker", "node": b"raylet/raylet"}
"""What the command line of a process says that does the jobs, by the engine that starts it, or that is Ray's node."""
NODE = 0.3
"""How often a kill in Ray is one of the node's own process, without which nothing goes on."""
PARENT = 0.3
"""How often a kill is one of the process that started the others."""
NAMES = {"workers": ("the parent", "a worker"), "ray": ("the driver", "an actor")}


@dataclass
class Bench(ABC):
    """The data, the model, what is expected, and what has happened so far."""

    place: Path
    chance: random.Random
    rows: int
    expected: list[dict[str, object]] = field(init=False)
    seconds: float = field(init=False)
    before: ClassVar[str] = ""
    """Of the engine's name in the table."""
    cut: ClassVar[dict[str, int]] = {}
    """How the rows are cut: names of `raison.explaining.files.survey`, and their values."""

    def __post_init__(self) -> None:
        self.place.mkdir(exist_ok=True)
        self.prepare()
        started = time.monotonic()
        self.explain(self.place / "whole")
        self.seconds = time.monotonic() - started
        self.expected = self.found(self.place / "whole")

    @abstractmethod
    def prepare(self) -> None:
        """Write the model and the data."""

    @abstractmethod
    def explain(self, out: Path) -> None:
        """Do the work in this process."""

    @abstractmethod
    def words(self) -> list[str]:
        """The command without its folder and its engine."""

    def found(self, out: Path) -> list[dict[str, object]]:
        """Every row without its seconds, and every rejected one."""
        written = read(out)
        assert written.is_complete
        assert not list((out / "work").iterdir())
        kept = ({name: value for name, value in row.items() if name != "seconds"} for row in written.rows())
        return [*kept, *map(json.loads, (out / "rejected.jsonl").read_text().splitlines())]


class Texts(Bench):
    """Texts whose predictions are explained."""

    cut: ClassVar[dict[str, int]] = {"ROWS": TOGETHER}

    def prepare(self) -> None:
        network, tokenizer = TINY["bert"]()
        network.save_pretrained(self.place / "model")
        tokenizer.save_pretrained(self.place / "model")
        self.model = raison.load(self.place / "model")
        texts = (" ".join(WORDS[row % 5 : row % 5 + 3 + row % 9]) for row in range(self.rows))
        # Some rows are blank, and are rejected.
        lines = [f"{row},{'' if row % 50 == 7 else text}\n" for row, text in enumerate(texts)]
        (self.place / "texts.csv").write_text("id,text\n" + "".join(lines))

    def explain(self, out: Path) -> None:
        raison.explain_file(self.model, self.place / "texts.csv", out, "random", reading=Reading(), progress=False)

    def words(self) -> list[str]:
        model, data = self.place / "model", self.place / "texts.csv"
        return ["explain", "--data", str(data), "--model", str(model), "--method", "random"]


class Questions(Bench):
    """Questions with sources, whose answers are cited."""

    before: ClassVar[str] = "cite, "
    cut: ClassVar[dict[str, int]] = {"SHARDS": FEW}

    def prepare(self) -> None:
        network, tokenizer = build_language_model("llama")
        network.save_pretrained(self.place / "writer")
        tokenizer.save_pretrained(self.place / "writer")
        writer = raison.load(self.place / "writer")
        assert isinstance(writer, Writer)
        self.writer = writer
        texts = [" ".join(WORDS[row % 5 : row % 5 + 3 + row % 9]) for row in range(self.rows)]
        sources = {"a": "the old sailor told a story.", "b": "a dull plot.", "c": "the film is a quiet pleasure."}
        # Some answers are blank, and are rejected.
        rows = [
            {"id": str(row), "question": text, "sources": sources, "answer": " " if row % 50 == 7 else f" {text}."}
            for row, text in enumerate(texts)
        ]
        (self.place / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def explain(self, out: Path) -> None:
        asked = {"template": "plain", "within": "source", "draws": 2, "progress": False}
        raison.cite_file(self.writer, self.place / "questions.jsonl", out, **asked)

    def words(self) -> list[str]:
        words = ["cite", "--data", str(self.place / "questions.jsonl"), "--model", str(self.place / "writer")]
        return [*words, "--template", "plain", "--within", "source", "--draws", "2"]


@dataclass
class Told:
    """What came of an engine."""

    engine: str
    killed: dict[str, int] = field(default_factory=dict)
    """How often which of its processes was killed."""
    whole: int = 0
    wrong: int = 0
    lost: int = 0
    """Rows that a file lacks."""
    doubled: int = 0
    """Rows beyond those that a file should have."""
    busy: int = 0

    @property
    def kills(self) -> int:
        return sum(self.killed.values())

    def count(self, name: str, is_killed: bool) -> None:
        if is_killed:
            self.killed[name] = self.killed.get(name, 0) + 1


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

    told = known(f"{bench.before}local")

    def run(out: Path) -> None:
        child = start(out)
        end, until = None, time.monotonic() + bench.chance.uniform(0, 0.6 * bench.seconds)
        while end is None and time.monotonic() < until:
            pid, status = os.waitpid(child, os.WNOHANG)
            end = status if pid else None
            time.sleep(0.002)
        if end is None:
            os.kill(child, signal.SIGKILL)
            _, end = os.waitpid(child, 0)
            told.count("the process", end == signal.SIGKILL)
        if end not in (0, signal.SIGKILL):
            raise RuntimeError(f"the work failed with {end}")

    return rounds(bench, told, kills, run)


def started(bench: Bench, out: Path, more: Sequence[str]) -> "subprocess.Popen[bytes]":
    """The command, in a process of its own."""
    words = [*bench.words(), "--out", str(out), "--json", *more]
    code = f"from raison.explaining.files import survey; vars(survey).update({bench.cut}); "
    code += f"from raison.cli import main; import sys; sys.argv[1:] = {words!r}; main()"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def shards(bench: Bench, kills: int) -> Told:
    """Two processes with a share each, of which one is killed; the other one goes on."""
    told = known(f"{bench.before}shard")

    def run(out: Path) -> None:
        for left in out.glob(".lock-*"):
            # Of a killed process: the next is to be killed at its work, not before.
            left.unlink()
        both = [started(bench, out, ["--shard", f"{number}/2"]) for number in (1, 2)]
        victim = bench.chance.choice(both)
        lock = out / f".lock-{both.index(victim) + 1}"
        while victim.poll() is None and not lock.exists():
            time.sleep(0.05)
        until = time.monotonic() + bench.chance.uniform(0, bench.seconds)
        while victim.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        victim.kill()
        said = [process.communicate()[1] for process in both]
        told.count("a shard's process", victim.returncode == -signal.SIGKILL)
        for process, errors in zip(both, said, strict=True):
            if process.returncode not in (0, -signal.SIGKILL):
                raise RuntimeError(errors.decode()[-2000:])

    return rounds(bench, told, kills, run)


def apart(engine: str) -> Callable[[Bench, int], Told]:
    """The same of an engine with processes of its own: one of them is killed, or the one that started them."""

    def several(bench: Bench, kills: int) -> Told:
        told = known(f"{bench.before}{engine}")
        more = ["--workers", "2", *(["--engine", "ray"] if engine == "ray" else [])]

        def run(out: Path) -> None:
            process = started(bench, out, more)
            killed = False
            for name in _killed(process, engine, bench):
                told.count(name, True)
                killed = True
            _, said = process.communicate()
            if b"another process is at work" in said:
                told.busy += 1
                time.sleep(1)
            elif process.returncode not in (0, -signal.SIGKILL) and not killed:
                raise RuntimeError(said.decode()[-2000:])

        return rounds(bench, told, kills, run)

    return several


def _killed(process: "subprocess.Popen[bytes]", engine: str, bench: Bench) -> Iterator[str]:
    """Kill two of those that do the jobs, or one and the one that started them, while there is work."""
    while process.poll() is None and not _workers(process.pid, engine):
        time.sleep(0.05)
    for _ in range(2):
        until = time.monotonic() + bench.chance.uniform(0, 2 * bench.seconds)
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        workers = _workers(process.pid, engine)
        if process.poll() is None and bench.chance.random() < PARENT:
            process.kill()
            yield NAMES[engine][0]
            return
        nodes = _workers(process.pid, "node") if engine == "ray" and bench.chance.random() < NODE else []
        if process.poll() is None and nodes:
            os.kill(nodes[0], signal.SIGKILL)
            yield "the node"
            return
        if process.poll() is None and workers:
            os.kill(bench.chance.choice(workers), signal.SIGKILL)
            yield NAMES[engine][1]


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


def rounds(bench: Bench, told: Told, kills: int, run: Callable[[Path], None]) -> Told:
    """Files one after the other, each started until it is complete."""
    begun = told.kills
    while told.kills - begun < kills:
        out = bench.place / f"{told.engine}-{told.whole + told.wrong}"
        while not (out / SUMMARY).exists():
            run(out)
        found, expected = (Counter(map(_line, rows)) for rows in (bench.found(out), bench.expected))
        told.lost += (expected - found).total()
        told.doubled += (found - expected).total()
        told.whole += found == expected
        told.wrong += found != expected
        print(told, flush=True)
        write(told)
    return told


def _line(row: dict[str, object]) -> str:
    return json.dumps(row, sort_keys=True)


def known(engine: str) -> Told:
    """What earlier runs found of an engine, to which further kills are added."""
    return Told(**_found().get(engine, {"engine": engine}))


def _found() -> dict[str, dict[str, Any]]:
    path = RESULTS / "kills.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write(told: Told) -> None:
    """Put what is known so far of an engine into the table."""
    path, found = RESULTS / "kills.json", _found()
    found[told.engine] = asdict(told)
    path.write_text(json.dumps(found, indent=1) + "\n")
    lines = ["# Kills at random moments", "", *(__doc__ or "").split("\n\n")[2].split("\n"), ""]
    lines += ["| engine | kills | of | files complete | rows lost | rows doubled or other |"]
    lines += ["| --- | ---: | --- | ---: | ---: | ---: |"]
    for one in found.values():
        of = ", ".join(f"{name} {count}" for name, count in one["killed"].items())
        total, whole = sum(one["killed"].values()), f"{one['whole']} of {one['whole'] + one['wrong']}"
        lines.append(f"| {one['engine']} | {total} | {of} | {whole} | {one['lost']} | {one['doubled']} |")
    lines += ["", f"{sum(sum(one['killed'].values()) for one in found.values())} kills in all."]
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, count in (
        ("local", 60),
        ("workers", 16),
        ("shard", 14),
        ("ray", 10),
        ("cite", 8),
        ("cite_ray", 4),
        ("seed", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=count)
    asked = parser.parse_args()
    engines = {"local": local, "workers": apart("workers"), "shard": shards, "ray": apart("ray")}
    found = []
    with tempfile.TemporaryDirectory() as place:
        chance = random.Random(asked.seed)
        if any(getattr(asked, name) for name in engines):
            vars(survey).update(Texts.cut)
            bench = Texts(Path(place) / "texts", chance, ROWS)
            found += [engines[name](bench, getattr(asked, name)) for name in engines if getattr(asked, name)]
        cited = {"workers": asked.cite, "ray": asked.cite_ray}
        if any(cited.values()):
            vars(survey).update(Questions.cut)
            questions = Questions(Path(place) / "questions", chance, QUESTIONS)
            found += [apart(name)(questions, count) for name, count in cited.items() if count]
    if any(one.wrong for one in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
