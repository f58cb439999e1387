"""What explaining whole files takes: memory, rate and size, with a tiny model and with one that costs nothing.

    python benchmarks/whole_files.py model [--rows 100000]      a tiny BERT, occlusion
    python benchmarks/whole_files.py nothing [--rows 1000000]   stand-in for model and method, so that only raison works
    python benchmarks/whole_files.py report                     benchmarks/results/whole_files.md from both

The machine has other work to do meanwhile, so that rates are rows per second of this process's own processor time,
reading the rows for the first time not counted, in stretches of a tenth of the rows after the first thousand. Memory is
the resident size after so many rows; pyarrow, of about 80 MB, is loaded beforehand. A run that
takes longer than --hours ends there, as explain_file does. Texts repeat the same few words, and so compress well.
"""

import argparse
import importlib
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import raison
from raison.core.inputs.parts import plain
from raison.core.inputs.unit import Unit
from raison.core.method import Method
from raison.core.model import LanguageModel, asked_of
from raison.core.results.explanation import Explanation
from raison.data import Row
from raison.data.streams import Item, Reading
from raison.explaining.files.explained_rows import RowExplainer, row_of
from raison.explaining.files.survey import Input, survey
from raison.explaining.files.texts import TextRows
from raison.explaining.files.work import FileWork
from raison.explaining.settings import Settings
from raison.jobs.engine import WHOLE, do
from raison.jobs.loadable import Loadable
from raison.methods import CATALOGUE
from raison.runs.files.flat_records import FlatRecord, record_of
from raison.runs.files.folder import Folder, read
from raison.text.segment import word_spans

RESULTS = Path(__file__).parent / "results"
WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
LOOKS = 10
"""Stretches of the rows whose rates are compared."""
FIRST = 1000
"""Rows after which memory is first looked at, and rates are taken."""


@dataclass(frozen=True)
class Nothing(RowExplainer[LanguageModel]):
    """In place of a method and a model: scores that are there already."""

    explains = "predictions"
    together = True
    method: Method

    def stated(self) -> dict[str, object]:
        return {}

    def standing(self, model: LanguageModel) -> LanguageModel:
        return model

    def check(self, model: LanguageModel, row: Row) -> None:
        pass

    def try_one(self, model: LanguageModel, row: Row) -> None:
        pass

    def records(self, model: LanguageModel, items: Sequence[Item]) -> list[FlatRecord]:
        return [record_of(item, 0, _given_away(str(plain(row_of(item).given)))) for item in items]


def _given_away(text: str) -> Explanation:
    units = tuple(Unit(start, end, text[start:end]) for start, end in word_spans(text))
    return Explanation(
        text=text, unit="word", units=units, scores=tuple(unit.start / 7 for unit in units), classes=("no", "yes"),
        probabilities=(0.25, 0.75), target="yes", against=None, of="probability", value_full=0.75, value_empty=0.5,
        method="nothing", config={}, model="nothing", removal="delete", seed=0, evaluations=0, gradients=0, seconds=0.0,
    )  # fmt: skip


def file_of(rows: int, folder: Path) -> Path:
    """Short texts, all different."""
    path = folder / "texts.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write("id,text\n")
        for row in range(rows):
            text = " ".join(WORDS[row % 5 : row % 5 + 3 + row % 9])
            file.write(f"{row},{text} {row % 997}\n")
    return path


def resident() -> float:
    """Megabytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def model_of(what: str) -> LanguageModel:
    if what == "nothing":
        return raison.load(lambda texts: [[0.25, 0.75]] * len(texts), classes=["no", "yes"])
    from tests.tiny import TINY

    return raison.load(*TINY["bert"]())


def measure(what: str, rows: int, hours: float) -> dict[str, Any]:
    """Explain so many rows, and what it took at each look."""
    torch.set_num_threads(1)
    importlib.import_module("pyarrow.parquet")
    with tempfile.TemporaryDirectory() as place:
        path, model = file_of(rows, Path(place)), model_of(what)
        how: RowExplainer[Any] = (
            Nothing(CATALOGUE.create("random"))
            if what == "nothing"
            else TextRows(CATALOGUE.create("occlusion"), Settings("word", of=asked_of(model, None)))
        )
        looks, done, started = [], 0, time.process_time()
        until = time.time() + 3600 * hours

        def advance(count: int) -> None:
            nonlocal done
            before, done = done, done + count
            if done >= FIRST > before or done * LOOKS // rows > before * LOOKS // rows:
                looks.append({"rows": done, "seconds": time.process_time() - began, "mb": round(resident(), 1)})

        seen = survey(Input((str(path),), Reading()))
        reading = time.process_time() - started
        work = FileWork(Loadable(model), seen, how, Folder(Path(place) / "out", "parquet"), until)
        began, wall = time.process_time(), time.time()
        with work.opened(WHOLE) as jobs:
            do(jobs(), progress=advance)
        written = read(Path(place) / "out")
        return {
            "what": what,
            "rows": rows,
            "done": done,
            "in_shards": written.done,
            "reading": reading,
            "processor": time.process_time() - began,
            "wall": time.time() - wall,
            "bytes": sum(one.bytes for one in written.receipts.values()),
            "shards": len(written.receipts),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "looks": looks,
        }


def rates(looks: Sequence[dict[str, float]]) -> list[float]:
    """Rows per second of processor time in each stretch."""
    return [(b["rows"] - a["rows"]) / (b["seconds"] - a["seconds"]) for a, b in pairwise(looks)]


def table(found: dict[str, dict[str, Any]]) -> str:
    lines = ["# Whole files", "", *(__doc__ or "").split("\n\n")[2].split("\n"), ""]
    lines += ["| | " + " | ".join(f"{one['what']}, {one['rows']:,} rows" for one in found.values()) + " |"]
    lines += ["| --- |" + " ---: |" * len(found)]
    told: dict[str, list[str]] = {}
    for one in found.values():
        pace = rates(one["looks"])
        first_look, last_look = one["looks"][0], one["looks"][-1]
        mean = (last_look["rows"] - first_look["rows"]) / (last_look["seconds"] - first_look["seconds"])
        first, last = first_look["mb"], last_look["mb"]
        values = {
            "rows explained": f"{one['done']:,}",
            "rows per second, after the first thousand": f"{mean:,.0f}",
            "slowest stretch": f"{min(pace):,.0f} ({min(pace) / mean - 1:+.1%})",
            "fastest stretch": f"{max(pace):,.0f} ({max(pace) / mean - 1:+.1%})",
            "first reading, rows per second": f"{one['rows'] / one['reading']:,.0f}",
            "memory after the first thousand (MB)": f"{first:,.0f}",
            "memory at the end (MB)": f"{last:,.0f} ({last - first:+.0f})",
            "highest memory (MB)": f"{one['peak_mb']:,.0f}",
            "bytes a row in parquet": f"{one['bytes'] / one['in_shards']:,.0f}",
            "files": f"{one['shards']:,}",
            "processor time (s)": f"{one['processor']:,.0f}",
            "time on the clock (s)": f"{one['wall']:,.0f}",
        }
        for name, value in values.items():
            told.setdefault(name, []).append(value)
    lines += [f"| {name} | " + " | ".join(values) + " |" for name, values in told.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["model", "nothing", "report"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--hours", type=float, default=24.0)
    asked = parser.parse_args()
    path = RESULTS / "whole_files.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    if asked.what != "report":
        found = measure(asked.what, asked.rows or {"model": 100_000, "nothing": 1_000_000}[asked.what], asked.hours)
        known = json.loads(path.read_text()) if path.exists() else {}
        known[f"{asked.what}-{found['rows']}"] = found
        path.write_text(json.dumps(known, indent=1) + "\n")
        print(json.dumps(found))
    path.with_suffix(".md").write_text(table(known))


if __name__ == "__main__":
    main()
