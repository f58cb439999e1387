"""Numbers of pages that stand in the records of a study's runs, and not in a claim.

Reading the records takes minutes for all pages. docs/recorded.csv has every answer; one is read from there if its
study's records have not changed.
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from marks import StaleError

if TYPE_CHECKING:
    from raison.runs.agreement import PairAgreement
    from raison.runs.run import Run

ROOT = Path(__file__).parents[1]
TABLE = "recorded.csv"
COLUMNS = ("study", "mark", "asked", "answer")
Key = tuple[str, str, str]


def passes(asked: Sequence[str]) -> str:
    """The mean passes per text of a study's row in the runs that fit. Raises StaleError where there are none."""
    from raison.runs.statistics import BACKWARD
    from raison.runs.table import finished_texts

    study, label, pattern = [*asked, "*"][:3]
    found: list[float] = []
    for folder in sorted((ROOT / "studies" / study / "results").glob("*/run.json")):
        run = run_of(study, folder.parent.name) if fnmatchcase(folder.parent.name, pattern) else None
        for row in () if run is None else run.header.rows:
            if row.label == label:
                costs = run.records.costs(label, row.seeds[0], finished_texts(run))
                found += (costs[:, 0] + BACKWARD * costs[:, 1]).tolist()
    if not found:
        raise StaleError(f"no run of {study} fits '{'; '.join(asked)}'")
    return f"{fmean(found):.0f}"


def mean(asked: Sequence[str]) -> str:
    """The mean of one row by a metric over the texts of a run. Raises StaleError where that cannot be said."""
    return _decimals(_mean(tuple(asked)))


def means(asked: Sequence[str]) -> str:
    """The smallest and the largest mean of several rows. Raises StaleError where that cannot be said."""
    study, labels, name, metric = asked
    found = [_mean((study, label.strip(), name, metric)) for label in labels.split("|")]
    return f"{_decimals(min(found))} to {_decimals(max(found))}"


def share(asked: Sequence[str]) -> str:
    """Of how many texts of one run a row has 1 by a metric, a share: less is not all. Raises StaleError for others."""
    from raison.numerics.statistics.successes import share_interval

    values = _values(tuple(asked))
    if not all(0 <= value <= 1 for value in values):
        raise StaleError(f"no share: '{'; '.join(asked)}'")
    count, total = sum(value == 1 for value in values), len(values)
    low, high = share_interval(count, total)
    return f"{count} of {total} [{low:.2g}, {high:.2g}]"


def cosine(asked: Sequence[str]) -> str:
    """The mean cosine of two rows over the texts of a run. Raises StaleError where that cannot be said."""
    study, labels, name = asked
    rows = {label.strip() for label in labels.split("|")}
    for found in (pair.cosine for pair in _agreement(study, name) if {pair.first, pair.second} == rows):
        return f"{_decimals(found.mean)} [{_decimals(found.low)}, {_decimals(found.high)}]"
    raise StaleError(f"no agreement: '{'; '.join(asked)}'")


def _mean(asked: tuple[str, ...]) -> float:
    return fmean(_values(asked))


def _decimals(value: float) -> str:
    return f"{value + 0.0:.3f}"


def _values(asked: tuple[str, ...]) -> Sequence[float]:
    """A row's values by a metric, one for each text of a run."""
    from raison.runs.table import finished_texts, scores_of

    study, label, name, metric = asked
    run = run_of(study, name)
    scores = scores_of(run, label, metric, finished_texts(run)) if label in {r.label for r in run.header.rows} else None
    if scores is None or not scores.values:
        raise StaleError(f"no values: '{'; '.join(asked)}'")
    return scores.values


@cache
def _agreement(study: str, name: str) -> "Sequence[PairAgreement]":
    from raison.runs.agreement import read_agreement

    return read_agreement(ROOT / "studies" / study / "results" / name)


@cache
def run_of(study: str, name: str) -> "Run":
    """A run of a study, which is read once. Raises StaleError."""
    from raison.runs.run import read_run

    folder = ROOT / "studies" / study / "results" / name
    if not (folder / "run.json").exists():
        raise StaleError(f"{study} has no run '{name}'")
    return read_run(folder)


OF_RUNS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "passes": passes,
    "mean": mean,
    "means": means,
    "share": share,
    "cosine": cosine,
}
"""Marks that are answered by records in place of claims; each names its study first."""


class Answers:
    """Answers to marks of runs: those of unchanged studies are read from the table.

    unchanged: the studies whose records are those that the table was made of.
    """

    def __init__(self, unchanged: Iterable[str] = ()) -> None:
        self.given: dict[Key, str] = {}
        """Every answer that was asked for."""
        self._unchanged = set(unchanged)
        self._known = read_table()

    def of(self, mark: str) -> Callable[[Sequence[str]], str]:
        """What answers this kind of mark."""

        def answer(asked: Sequence[str]) -> str:
            key = (asked[0], mark, "; ".join(asked[1:]))
            if key not in self.given:
                known = self._known.get(key) if asked[0] in self._unchanged else None
                self.given[key] = OF_RUNS[mark](asked) if known is None else known
            return self.given[key]

        return answer

    def table(self) -> str:
        """The text of the table of all that was given."""
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([*key, answer] for key, answer in sorted(self.given.items()))
        return text.getvalue()


def read_table() -> dict[Key, str]:
    """The committed table."""
    path = Path(__file__).with_name(TABLE)
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {(row["study"], row["mark"], row["asked"]): row["answer"] for row in csv.DictReader(file)}
