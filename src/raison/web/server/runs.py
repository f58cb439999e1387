"""Comparisons in folders, in slices. Only what lies below one folder is read, links followed before the check."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from raison.core.errors import DataError, RaisonError, UnknownNameError
from raison.core.results.explanation import Explanation
from raison.runs.record import Record
from raison.runs.record import plain as plain_value
from raison.runs.run import HEADER, Run, read_header, read_run

DEPTH = 4
"""Folders below the named one that are looked through."""
MOST = 500
"""Runs that are listed."""
TEXTS = 50_000
"""Texts of a run that can be shown."""


class AbsentError(Exception):
    """There is no such run, row or text."""


@dataclass(frozen=True, slots=True)
class Place:
    """One row of a run under one seed."""

    run: str
    row: str
    seed: int


@dataclass(frozen=True, slots=True)
class Line:
    """One text of a row. `text`, `confidence` and `top` are None where the run holds records only."""

    number: int
    text: str | list[str] | None
    prediction: str
    target: str
    confidence: float | None
    units: int
    top: str | None
    scores: dict[str, object]
    evaluations: float
    gradients: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RowFacts:
    """A row of a run's table."""

    label: str
    method: str
    seeds: tuple[int, ...]
    selected_by: str | None


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """A metric of a run."""

    label: str
    higher_is_better: bool | None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run. `explained` says whether it holds explanations, `labelled` whether it explained each text's own label."""

    run: str
    model: str
    data: str
    texts: int
    unit: str
    of: str
    rows: tuple[RowFacts, ...]
    metrics: tuple[MetricFacts, ...]
    explained: bool
    labelled: bool


class Runs:
    """The runs below a folder; none without one."""

    def __init__(self, folder: Path | None) -> None:
        self._root = None if folder is None else folder.resolve()
        # Read again only when its files have changed; few at a time, because each takes memory.
        self._read = lru_cache(maxsize=4)(self._reading)
        self._lined = lru_cache(maxsize=8)(self._lining)

    def all(self) -> list[RunFacts]:
        """Every run that can be read, by its path."""
        found = []
        for name, folder in self._folders():
            try:
                found.append(_facts(name, folder))
            except RaisonError:
                # Another version's, or a broken one: the others are there nevertheless.
                continue
        return found

    def lines(self, place: Place) -> Sequence[Line]:
        """The texts of a row. Raises AbsentError, DataError."""
        folder = self._folder(place.run)
        return self._lined(folder, _state(folder), place)

    def labelled(self, run: str) -> bool:
        """Whether the targets of a run are its texts' own labels. Raises AbsentError, DataError."""
        return _facts(run, self._folder(run)).labelled

    def explanation(self, place: Place, number: int) -> Explanation:
        """One explanation of a row. Raises AbsentError, DataError."""
        folder = self._folder(place.run)
        run = self._read(folder, _state(folder))
        if (place.row, place.seed, number) not in run.records:
            raise AbsentError(f"{place.run} has no text {number} of {place.row} under seed {place.seed}.")
        return run.explanations(place.row, place.seed)[number]

    def _folders(self) -> Iterator[tuple[str, Path]]:
        """Folders of runs, by their paths below the root."""
        if self._root is None:
            return
        count = 0
        for path, folders, files in os.walk(self._root):
            folder = Path(path)
            depth = len(folder.relative_to(self._root).parts)
            folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < DEPTH else []
            if HEADER in files and _inside(folder, self._root):
                yield folder.relative_to(self._root).as_posix(), folder
                count += 1
            if count >= MOST:
                return

    def _folder(self, run: str) -> Path:
        """A run's folder: one of those that are found, so that no path of a request is ever opened."""
        known = dict(self._folders())
        if run not in known:
            raise AbsentError(str(UnknownNameError("run", run[:200], known)))
        return known[run]

    def _reading(self, folder: Path, state: object) -> Run:
        head = read_header(folder / HEADER)
        if head.texts > TEXTS:
            raise DataError(f"the run has {head.texts:,} texts, and {TEXTS:,} can be shown.")
        return read_run(folder)

    def _lining(self, folder: Path, state: object, place: Place) -> tuple[Line, ...]:
        run = self._read(folder, state)
        if (place.row, place.seed) not in run.header.keys:
            raise AbsentError(f"{place.run} has no row {place.row!r:.80} under seed {place.seed}.")
        metrics = [metric.label for metric in run.header.single]
        known = run.explains(place.row, place.seed)
        explained = iter(run.explanations(place.row, place.seed)) if known else None
        lines = []
        for number in range(run.header.texts):
            e = None if explained is None else next(explained)
            if (place.row, place.seed, number) in run.records:
                lines.append(_line(run.records[place.row, place.seed, number], metrics, e))
        return tuple(lines)


def _line(record: Record, metrics: Sequence[str], e: Explanation | None) -> Line:
    text = None if e is None else e.text if isinstance(e.text, str) else list(e.text)
    return Line(
        number=record.text,
        text=text,
        prediction=record.prediction,
        target=record.target,
        confidence=None if e is None else max(e.probabilities, default=None),
        units=record.units,
        top=None if e is None or not e.units else e.units[e.order()[0]].text,
        scores={label: plain_value(score) for label, score in zip(metrics, record.scores, strict=True)},
        evaluations=record.costs.evaluations,
        gradients=record.costs.gradients,
        seconds=record.costs.seconds,
    )


def _facts(name: str, folder: Path) -> RunFacts:
    head = read_header(folder / HEADER)
    target = head.settings.raw.get("target")
    return RunFacts(
        run=name,
        model=head.model,
        data=head.data,
        texts=head.texts,
        unit=head.settings.unit,
        of=head.settings.of,
        rows=tuple(RowFacts(row.label, row.method, row.seeds, row.selected_by) for row in head.rows),
        metrics=tuple(MetricFacts(metric.label, metric.higher_is_better) for metric in head.single),
        explained=any(folder.glob("explanations*.jsonl*")),
        labelled=isinstance(target, list) and len(target) == head.texts,
    )


def _inside(folder: Path, root: Path) -> bool:
    """Whether the folder and all files in it lie below the root, wherever links lead."""
    return all(path.resolve().is_relative_to(root) for path in (folder, *folder.iterdir()))


def _state(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Equal as long as the folder's files are the same."""
    return tuple(sorted((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in folder.iterdir()))
