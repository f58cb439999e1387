"""The jobs of explaining a file: one per shard of its rows, and finally the summary."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic

from raison._version import __version__
from raison.core.errors import DataError
from raison.core.registry import label_of
from raison.core.settings.reading import dump
from raison.explaining.files.explained_rows import M, RowExplainer, explain_rows
from raison.explaining.files.survey import Cursor, RowPart, Survey
from raison.jobs import disk
from raison.jobs.engine import Job, Shard
from raison.jobs.file_digest import sha256_of
from raison.jobs.folder import EXPLANATIONS, begun_in, claimed, forget, read_marker, write_marker
from raison.jobs.identity import DATA, IDENTITY, SETTINGS, check, digest_of
from raison.jobs.loadable import Loadable
from raison.jobs.store import RecordStore, write_record
from raison.models.derived.identity import files_identity, identity_of
from raison.progress import ProgressCallback
from raison.runs.files import shards as written
from raison.runs.files import summary
from raison.runs.files.flat_records import COLUMNS, FlatRecord
from raison.runs.files.folder import SCHEMA, SUMMARY, Folder, Receipt, Rejected

TITLE = "explain"
WHAT = "explanation of a file"


@dataclass(frozen=True)
class FileWork(Generic[M]):
    """Explaining the rows of a survey, into a folder. `until` is the clock time after which no part is started."""

    model: Loadable[M]
    survey: Survey
    how: RowExplainer[M]
    shards: Folder
    until: float | None = None

    @property
    def folder(self) -> Path:
        """Where the explanations go."""
        return self.shards.path

    @contextmanager
    def opened(self, shard: Shard) -> Iterator[Callable[[], list[Job]]]:
        """Inside, the folder, or a share of it, belongs to this process. Raises DataError if it contains other work."""
        model = self.model.get()
        with begun_in(self.folder, EXPLANATIONS, shard.file, partial(self._begin, self.head(model))):
            yield partial(self._jobs, model)

    def _begin(self, head: Mapping[str, Any]) -> None:
        known = read_marker(self.folder, EXPLANATIONS)
        if known is None:
            write_marker(self.folder, EXPLANATIONS, head)
        else:
            _check(self.folder, known, head)

    def head(self, model: M) -> dict[str, Any]:
        """The manifest."""
        method, stated, standing = label_of(self.how.method), self.how.stated(), self.how.standing(model)
        stated_settings = [method, stated, self.survey.input.reading.limit, self.shards.format]
        return {
            "schema": SCHEMA,
            "raison": __version__,
            "explains": self.how.explains,
            "sources": list(self.survey.input.sources),
            "rows": self.survey.rows,
            "limit": self.survey.input.reading.limit,
            "shards": len(self.survey.shards),
            "format": self.shards.format,
            "model": model.name,
            "outputs": standing.outputs,
            "method": method,
            "settings": stated,
            "columns": {column.name: column.about for column in COLUMNS},
            IDENTITY: {
                **identity_of(standing),
                **files_identity(standing, [self.how.method]),
                DATA: digest_of([self.survey.sha256, self.survey.rows]),
                SETTINGS: digest_of(stated_settings),
            },
        }

    def _jobs(self, model: M) -> list[Job]:
        """A job for each shard, in the order of the rows, and one for the summary."""
        desk = _ProcessState(model, Cursor(self.survey))
        jobs = [
            Job(
                f"shard {number}",
                TITLE,
                partial(self._do, desk, number),
                partial(self._is_done, number),
                cost=sum(part.characters for part in parts),
                size=sum(part.rows for part in parts),
                unit="rows",
                reads_on=True,
            )
            for number, parts in enumerate(self.survey.shards)
        ]
        finish = partial(self._finish, len(jobs))
        return [*jobs, Job("summary", "summary", finish, (self.folder / SUMMARY).exists, last=True)]

    def _do(self, desk: "_ProcessState[M]", number: int, advance: ProgressCallback) -> None:
        """The missing parts of a shard, one after the other; then its file, its receipt, and the parts go.

        Nothing if another process is at it, one whose share is counted otherwise.
        """
        with claimed(self.shards.lock(number)) as is_mine:
            if is_mine:
                self._do_alone(desk, number, advance)

    def _do_alone(self, desk: "_ProcessState[M]", number: int, advance: ProgressCallback) -> None:
        if self.shards.receipt(number).exists():
            disk.remove(self.shards.work(number))
            advance(sum(part.rows for part in self.survey.shards[number]))
            return
        store = RecordStore(self.shards.work(number))
        done = _places(store)
        for part in self.survey.shards[number]:
            if part.start not in done:
                if self.until is not None and time.time() >= self.until:
                    return
                results = explain_rows(desk.model, desk.cursor.part(part), self.how)
                rejected = list(map(asdict, results.rejected))
                store.append([{"part": part.start, "rows": results.records, "rejected": rejected}])
                advance(part.rows, desk.noted(part, results.records))
            else:
                advance(part.rows)
        self._complete(number, store)

    def _is_done(self, number: int) -> bool:
        """Whether a shard has its receipt, and its parts have been deleted."""
        return self.shards.receipt(number).exists() and not self.shards.work(number).exists()

    def _complete(self, number: int, store: RecordStore) -> None:
        # A shard that is made again was in the summary as it was.
        disk.remove(self.folder / SUMMARY)
        path, places = self.shards.shard(number), _places(store)
        parts = [places[part.start] for part in self.survey.shards[number]]
        tally = _ShardCounts(sum(part.rows for part in self.survey.shards[number]))
        written.write(path, (row for part in store.at(parts) for row in tally.counted(part)), self.shards.format)
        write_record(self.shards.receipt(number), asdict(tally.receipt(path)))
        disk.remove(self.shards.work(number))

    def _finish(self, count: int, advance: ProgressCallback) -> None:
        if all(self.shards.receipt(number).exists() for number in range(count)):
            for left in range(count):
                # A killed process may have left one.
                forget(self.shards.lock(left))
            summary.write(self.folder)
        advance(1)


@dataclass
class _ShardCounts:
    """Counts what goes into a shard."""

    rows: int
    explanations: int = 0
    evaluations: int = 0
    gradients: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.rejected: list[Rejected] = []
        self._text: tuple[int, int] = (-1, 0)

    def counted(self, part: FlatRecord) -> Iterator[FlatRecord]:
        self.rejected += [Rejected(**one) for one in part["rejected"]]
        for row in part["rows"]:
            self.explanations += 1
            self.evaluations += self._further(row["row"], row["evaluations"])
            self.gradients += row["gradients"]
            self.seconds += row["seconds"]
            yield row

    def _further(self, text: int, evaluations: int) -> int:
        """The forward passes that a row adds to those of its text's earlier rows, of which it shares what it can."""
        known, most = self._text
        before = most if known == text else 0
        self._text = text, max(before, evaluations)
        return max(0, evaluations - before)

    def receipt(self, path: Path) -> Receipt:
        file = path.stat().st_size, sha256_of([path])
        counts = self.rows, self.explanations, tuple(self.rejected), self.evaluations, self.gradients, self.seconds
        return Receipt(*counts, *file)


def _places(store: RecordStore) -> dict[int, int]:
    """The places of completely written parts, by their first rows."""
    parts = ((line, line.parsed()) for line in store.lines())
    return {record["part"]: line.place for line, record in parts if record is not None}


@dataclass
class _ProcessState(Generic[M]):
    """The model that a process uses, and the cost of its rows so far."""

    model: M
    cursor: Cursor
    rows: int = 0
    passes: int = 0

    def noted(self, part: RowPart, records: Sequence[FlatRecord]) -> str:
        self.rows += part.rows
        self.passes += sum(record["evaluations"] + record["gradients"] for record in records)
        return f"{self.passes / self.rows:,.0f} passes a row"


def refuse_other(work: FileWork[M]) -> None:
    """DataError if the folder contains these explanations with another model, data or settings. Touches nothing."""
    known = read_marker(work.folder, EXPLANATIONS)
    if known is not None:
        _check(work.folder, known, work.head(work.model.get()))
        if known.get("shards") != len(work.survey.shards):
            raise DataError(
                f"{work.folder} was written with another division into shards: choose another folder for --out."
            )


def _check(place: Path, known: Mapping[str, Any], head: Mapping[str, Any]) -> None:
    """DataError with what differs, unless the manifest in a folder is that of this work."""
    try:
        check(place, WHAT, known, head[IDENTITY])
    except DataError as error:
        told = ", ".join(_settings(known, head))
        raise DataError(f"{error} Different settings: {told:.400}." if told else str(error)) from None


def _settings(known: Mapping[str, Any], head: Mapping[str, Any]) -> Iterator[str]:
    """The settings that differ, each with its two values."""
    # As a manifest that was read: JSON has no tuples.
    stated = json.loads(dump(head))
    pairs = [(name, known.get(name), stated[name]) for name in ("method", "limit", "format")]
    settings = known.get("settings") or {}
    pairs += [(name, settings.get(name), value) for name, value in stated["settings"].items()]
    for name, there, here in pairs:
        if there != here:
            yield f"{name} ({there} there, {here} here)"
