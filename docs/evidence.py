"""Writes the numbers that method="auto" rests on from the committed records. `--check`: are they stale?

    python docs/evidence.py            # writes src/raison/combining/evidence.json if records or rules have changed
    python docs/evidence.py --all      # writes it in any case: a minute or two
    python docs/evidence.py --check

Three questions, answered by records of studies and of benchmarks:

- From how many units on is a method of one pass as faithful as kernel_shap? Faithful is what an audit means by it: AOPC
  comprehensiveness and AOPC sufficiency, each alone and both together, text by text. A method passes from n units on
  where no run has it below kernel_shap on its texts of at least n units (the rule of claims), at least RUNS runs have
  enough such texts, and over the texts of all runs the difference of both together is above zero. One that is behind
  kernel_shap on some model by whole curves (benchmarks/whole_curves.py) is left out: there all words are masked, and
  not at most half of them deleted.
- Which estimator of kernel_shap has the smallest error at a number of passes? The geometric mean over the games.
- From how many units for each pass on is a text explained from coarse to fine? Where there are more units than passes,
  and coarse_to_fine is ahead of kernel_shap on average at that ratio and at every larger one.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from findings import digest, studies
from recorded import run_of

from raison.numerics.statistics.paired import Difference, difference
from raison.runs.judging import FEWEST, finding_of
from raison.runs.run import Run
from raison.runs.statistics import BACKWARD
from raison.runs.table import finished_texts

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "src/raison/combining/evidence.json"
STUDIES = ("catalogue_sst2", "rpi_tables_2_6", "rpi_table_4", "aml_table_1", "aml_table_2")
"""Those that compare methods of one pass with kernel_shap by both counts. What tests auto itself is none of them."""
ERRORS = ROOT / "benchmarks/results/shapley_error.json"
CURVES = ROOT / "benchmarks/results/whole_curves.json"
LONG = ROOT / "benchmarks/results/few_passes.json"
RULES = (Path(__file__), ROOT / "src/raison/numerics/statistics/paired.py", ROOT / "src/raison/runs/judging.py")
"""The code that says who passes."""
COUNTS = ("aopc_comprehensiveness", "aopc_sufficiency")
BASE = "kernel_shap"
ONE_PASS = 2 + BACKWARD
"""Passes per text: a text and its baseline there, and one pass back."""
RUNS = 3
DECODERS = "demo/smollm2"
"""The beginning of the names of the decoders; the other models of these studies are encoders."""


@dataclass(frozen=True)
class Beside:
    """A method's texts beside kernel_shap's in one run: both counts, (texts, 2), higher is better."""

    run: str
    model: str
    texts: Sequence[int]
    units: np.ndarray
    own: np.ndarray
    base: np.ndarray
    passes: float
    """Passes of kernel_shap per text."""

    def gaps(self, least: int) -> Iterator[Difference]:
        """Differences on texts of at least `least` units: each count alone, and both together, computed lazily."""
        there = self.units >= least
        own, base = self.own[there], self.base[there]
        columns = [(own[:, [count]], base[:, [count]]) for count in range(len(COUNTS))]
        for first, second in (*columns, (own.sum(1, keepdims=True), base.sum(1, keepdims=True))):
            yield difference(first, second)


def folders() -> Iterator[Path]:
    """The runs of the studies."""
    for study in STUDIES:
        yield from sorted(path.parent for path in (ROOT / "studies" / study / "results").glob("*/run.json"))


def beside(folder: Path) -> Iterator[tuple[str, Beside]]:
    """Every method of one pass of a run, beside kernel_shap with its own estimator."""
    run = run_of(folder.parents[1].name, folder.name)
    texts = finished_texts(run)
    rows = {row.label: row.seeds[0] for row in run.header.rows if row.selected_by is None}
    base = next(label for label in rows if label.startswith(BASE) and "estimator" not in label)
    units = np.array([run.records[base, rows[base], text].units for text in texts])
    for label, seed in rows.items():
        if 0 < _cost(run, label, seed, texts) <= ONE_PASS:
            scores, of_base = _scores(run, label, seed, texts), _scores(run, base, rows[base], texts)
            passes = _cost(run, base, rows[base], texts)
            name = f"{folder.parents[1].name}/{folder.name}"
            yield label, Beside(name, run.header.model, texts, units, scores, of_base, passes)


def _cost(run: Run, label: str, seed: int, texts: Sequence[int]) -> float:
    evaluations, gradients, _ = run.records.costs(label, seed, texts).mean(axis=0)
    return float(evaluations + BACKWARD * gradients)


def _scores(run: Run, label: str, seed: int, texts: Sequence[int]) -> np.ndarray:
    metrics = [metric.label for metric in run.header.single]
    columns = [run.records.scores(label, seed, metrics.index(count), texts)[:, 0] for count in COUNTS]
    return np.stack([columns[0], -columns[1]], axis=1)


def cheap_methods() -> list[dict[str, Any]]:
    """The methods that pass, per architecture, the one with the largest gain first."""
    found: dict[tuple[str, str], list[Beside]] = {}
    for folder in folders():
        for label, runs in beside(folder):
            architecture = "decoder" if runs.model.startswith(DECODERS) else "encoder"
            found.setdefault((architecture, label), []).append(runs)
    left_out = behind_by_curves()
    kept = {key: runs for key, runs in found.items() if key[1] not in left_out}
    passing = [entry for (kind, label), runs in kept.items() for entry in _passing(kind, label, runs)]
    return sorted(passing, key=lambda entry: (entry["architecture"], -entry["gain"]))


def behind_by_curves() -> set[str]:
    """The methods whose interval lies below zero on some model."""
    rows = json.loads(CURVES.read_text(encoding="utf-8"))["rows"]
    return {row["method"] for row in rows if row["high"] < 0}


def _passing(architecture: str, label: str, runs: Sequence[Beside]) -> list[dict[str, Any]]:
    """One entry, with the fewest units from which the method passes; none where there are none."""
    longest = max(int(run.units.max()) for run in runs)
    for least in range(1, longest + 1):
        judged = [run for run in runs if (run.units >= least).sum() >= FEWEST]
        if len(judged) < RUNS:
            return []
        if any(finding_of(gap, "below") == "holds" for run in judged for gap in run.gaps(least)):
            continue
        gap = _pooled(judged, least)
        if gap.low > 0:
            return [
                {
                    "architecture": architecture,
                    "method": label,
                    "units": least,
                    "passes": round(max(run.passes for run in judged)),
                    **{name: round(value, 3) for name, value in asdict(gap).items() if name in ("low", "high")},
                    "gain": round(gap.mean, 3),
                    "texts": gap.count,
                    "runs": [run.run for run in judged],
                }
            ]
    return []


def _pooled(runs: Sequence[Beside], least: int) -> Difference:
    """Both counts together on the texts of all runs; a text that two studies have counts once."""
    known: dict[tuple[str, str, int, int], tuple[float, float]] = {}
    for run in runs:
        data = run.run.partition("--")[2]
        for place in np.flatnonzero(run.units >= least):
            pair = (float(run.own[place].sum()), float(run.base[place].sum()))
            # By words and by tokens it is explained twice.
            known.setdefault((run.model, data, run.texts[place], int(run.units[place])), pair)
    first, second = (np.array(values)[:, None] for values in zip(*known.values(), strict=True))
    return difference(first, second)


def estimators() -> list[dict[str, Any]]:
    """For each tabulated number of passes the estimator with the smallest mean error."""
    rows = json.loads(ERRORS.read_text(encoding="utf-8"))["rows"]
    own = [row for row in rows if row["estimator"].partition("(")[0] == BASE]
    columns = [name for name in own[0] if name.isdigit()]
    return [{"passes": int(column), "method": _smallest(own, column)} for column in columns]


def _smallest(rows: Sequence[Mapping[str, str]], column: str) -> str:
    errors: dict[str, list[float]] = {}
    for row in rows:
        errors.setdefault(row["estimator"], []).append(np.log(float(row[column].split()[0])))
    return min(errors, key=lambda label: float(np.mean(errors[label])))


def few_passes() -> dict[str, Any]:
    """The fewest words for each pass from which on coarse to fine is ahead in every line, and those lines' gaps."""
    rows = [row for row in json.loads(LONG.read_text(encoding="utf-8"))["rows"] if row["words"] > row["passes"]]
    rows.sort(key=lambda row: row["words"] / row["passes"])
    behind = [place for place, row in enumerate(rows) if row["gap"] <= 0]
    ahead = rows[behind[-1] + 1 if behind else 0 :]
    if not ahead:
        raise SystemExit(f"{LONG.name}: coarse to fine is ahead nowhere, so that auto has no use for it.")
    return {"units": ahead[0]["words"], "passes": ahead[0]["passes"], "gaps": [row["gap"] for row in ahead]}


def digests(numbers: Mapping[str, Any]) -> dict[str, str]:
    """Of what the numbers are made of (records by study, benchmarks and rules by file), and of the numbers."""
    records = {name: digest(studies()[name]) for name in STUDIES}
    files = {path.name: path.read_bytes() for path in (ERRORS, CURVES, LONG, *RULES)}
    files["numbers"] = json.dumps(numbers, sort_keys=True).encode()
    return records | {name: sha256(content).hexdigest() for name, content in files.items()}


def content() -> str:
    """The file's text."""
    numbers = {"cheap_methods": cheap_methods(), "estimators": estimators(), "few_passes": few_passes()}
    note = {"note": "Generated by `python docs/evidence.py`; do not edit."}
    return json.dumps(note | numbers | {"digests": digests(numbers)}, indent=1) + "\n"


def unchanged() -> bool:
    """Whether the file's digests are those of its numbers and of what these were made of."""
    if not PLACE.exists():
        return False
    known = json.loads(PLACE.read_text(encoding="utf-8"))
    return known.get("digests") == digests(
        {name: known[name] for name in ("cheap_methods", "estimators", "few_passes")}
    )


def stale(everything: bool = False, write: bool = False) -> list[str]:
    """The file's name, unless it is what the records say; with `write` it is then written."""
    if not everything and unchanged():
        return []
    text = content()
    if PLACE.exists() and PLACE.read_text(encoding="utf-8") == text:
        return []
    if write:
        PLACE.write_text(text, encoding="utf-8")
    return [PLACE.name]


def main() -> int:
    """Write the file, or say that it is stale."""
    check = "--check" in sys.argv
    found = stale("--all" in sys.argv, write=not check)
    if found and check:
        sys.stderr.write(f"stale: {', '.join(found)}; run python docs/evidence.py\n")
    return 1 if found and check else 0


if __name__ == "__main__":
    sys.exit(main())
