"""A run: the request and the records of every text, in memory or in a folder that survives kills.

    run.json            the request, with the schema's version and those of the libraries
    records.jsonl       one line per row, seed and text: scores and costs, no text
    explanations.jsonl  the same keys with the complete explanations, including texts
    groups.jsonl        the values of metrics of many texts together

Records are enough for every table; they contain no texts, so they can be published even if the texts cannot. Each file
may also be stored as .jsonl.gz, for reading only.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from raison.core.errors import DataError
from raison.core.results.explanation import Explanation
from raison.core.settings.tables import read_written
from raison.jobs import identity
from raison.jobs.folder import COMPARISON, refuse_others, write_marker
from raison.jobs.store import RecordStore, read_head
from raison.runs import record_validation
from raison.runs.columns import Columns
from raison.runs.explained import ExplanationOffsets
from raison.runs.headers import RunHead
from raison.runs.record import Record as Record
from raison.runs.record import RecordKey as RecordKey
from raison.runs.record import plain, scalar
from raison.runs.record_validation import check_schema

SCHEMA = 1
HEADER = COMPARISON.marker
CAUTIONS = "cautions"
"""Cautions to report with the results, found when the run began."""
OUTPUTS = "outputs"
"""The header's key for outputs other than classes; see raison.core.targets.outputs."""
TOGETHER = "together"
"""The header's key for the number of texts that are written together."""
TEXT_NUMBERS = "text_numbers"
"""The header's key for the number of the text of each prediction, if all predictions in a text count."""
UNCOMPARED = ("versions", identity.IDENTITY, CAUTIONS, OUTPUTS, TOGETHER)
"""Parts of the header in which a continued run may differ."""


@dataclass
class Run:
    """`dropped` counts broken lines that were left out when the folder was read; their work is repeated.

    `shard` is the number of the writing process, if several share the work.
    """

    header: RunHead
    folder: Path | None = None
    shard: int | None = None
    records: Columns = field(init=False)
    groups: dict[tuple[str, int, str], list[tuple[float, ...]]] = field(default_factory=dict)
    dropped: int = 0
    _kept: dict[RecordKey, Explanation] = field(default_factory=dict)
    _stored: ExplanationOffsets | None = None

    def __post_init__(self) -> None:
        self.records = Columns(self.header.texts)

    def add(self, rows: Sequence[tuple[Record, Explanation]]) -> None:
        """Store these; in a folder, they are on disk when this returns. Raises DataError when it is full.

        Without a folder, explanations are kept if a metric of many texts will need them.
        """
        if self.folder is not None:
            self._store("explanations").append(
                {"row": r.row, "seed": r.seed, "text": r.text, "explanation": e.to_dict()} for r, e in rows
            )
            self._stored = None
        elif self.header.grouped:
            self._kept.update({record.key: explanation for record, explanation in rows})
        # Last: a text with a record is complete.
        self.add_records([record for record, _ in rows])

    def add_records(self, records: Sequence[Record]) -> None:
        """Store records without explanations. Raises DataError when the disk is full."""
        if self.folder is not None:
            self._store("records").append(record.to_dict() for record in records)
        for record in records:
            self.records.add(record)

    def add_groups(self, row: str, seed: int, metric: str, values: Sequence[tuple[float, ...]]) -> None:
        """Store the values of all groups of one row."""
        if self.folder is not None:
            listed = [[plain(value) for value in group] for group in values]
            self._store("groups").append([{"row": row, "seed": seed, "metric": metric, "values": listed}])
        self.groups[row, seed, metric] = list(values)

    def explanations(self, row: str, seed: int) -> Sequence[Explanation]:
        """The explanations of all texts, read on demand. Raises DataError unless the folder contains all of them."""
        there = self._there(row, seed)
        if not there.all():
            raise DataError(self._lacking(row, there))
        return self._existing(row, seed)

    def explanation(self, row: str, seed: int, text: int) -> Explanation:
        """The explanation of a text. Raises DataError if the folder does not contain it."""
        there = self._there(row, seed)
        if not there[text]:
            raise DataError(self._lacking(row, there))
        return self._existing(row, seed)[int(there[:text].sum())]

    def _lacking(self, row: str, there: np.ndarray) -> str:
        """Why a row has not all explanations."""
        if there.any():
            have = f"{int(there.sum()):,} of {len(there):,} texts"
            return f"{self.folder} has the explanations by {row} of {have}: resume the run for the others."
        return (
            f"{self.folder} has no explanation by {row}: it contains only records. Run it again in an empty folder to "
            "get the explanations too."
        )

    def explained(self, row: str, seed: int) -> Iterator[tuple[int, Explanation]]:
        """The texts that have an explanation, and these, read on demand."""
        return zip(np.flatnonzero(self._there(row, seed)).tolist(), self._existing(row, seed), strict=True)

    def has_explained(self, row: str, seed: int) -> bool:
        """Whether the explanation of any text exists."""
        return bool(self._there(row, seed).any())

    def explains(self, row: str, seed: int) -> bool:
        """Whether the explanations of one row exist for all texts."""
        return bool(self._there(row, seed).all())

    def is_done(self, row: str, seed: int, texts: Sequence[int]) -> bool:
        """Whether all of these texts have a record."""
        return bool(self.records.done(row, seed)[texts].all())

    def _there(self, row: str, seed: int) -> np.ndarray:
        if self.folder is not None:
            return self._explained.there(row, seed)
        return np.array([(row, seed, text) in self._kept for text in range(self.header.texts)], dtype=np.bool_)

    def _existing(self, row: str, seed: int) -> Sequence[Explanation]:
        if self.folder is not None:
            return self._explained.of_row(row, seed)
        keys = ((row, seed, text) for text in range(self.header.texts))
        return [self._kept[key] for key in keys if key in self._kept]

    @property
    def _explained(self) -> ExplanationOffsets:
        if self._stored is None:
            self._stored = ExplanationOffsets(self._store("explanations"), self.header.texts, {*self.header.keys})
        return self._stored

    def _store(self, name: str) -> RecordStore:
        assert self.folder is not None
        return RecordStore(self.folder / f"{name}.jsonl", self.shard)

    def refresh(self) -> None:
        """Read the folder again, since other processes may have written."""
        assert self.folder is not None, "a run in memory is its own"
        there = read_run(self.folder, self.shard)
        self.records, self.groups, self.dropped, self._stored = there.records, there.groups, there.dropped, None

    def has_groups(self, row: str, seed: int, metric: str) -> bool:
        """Whether the values of a metric of many texts exist."""
        return (row, seed, metric) in self.groups


def open_run(header: RunHead, folder: Path, shard: int | None = None) -> Run:
    """Open a run to continue. Raises DataError for a folder that contains another one."""
    refuse_others(folder, COMPARISON)
    if not (folder / HEADER).exists():
        write_marker(folder, COMPARISON, header.raw)
    check_same(folder, header)
    return read_run(folder, shard)


def check_same(folder: Path, header: RunHead) -> None:
    """Raise DataError with the differences unless the folder's run has this header. Writes nothing."""
    known = read_header(folder / HEADER)
    if header.identity:
        identity.check(folder, "run", known.raw, header.identity)
    keys = (header.raw.keys() | known.raw.keys()) - set(UNCOMPARED)
    identity.refuse(folder, "run", sorted(key for key in keys if header.raw.get(key) != known.raw.get(key)))


def read_run(folder: Path, shard: int | None = None) -> Run:
    """The run in a folder. Raises DataError if there is none or it was written by a newer version."""
    run = Run(read_header(folder / HEADER), folder, shard)
    keys, parts = {*run.header.keys}, [metric.parts for metric in run.header.single]

    def check(record: Mapping[str, Any]) -> None:
        record_validation.check_record(record, run.header.texts, parts)
        record_validation.check_row(record, keys)

    for record in _records(RecordStore(folder / "records.jsonl"), run, check):
        run.records.add(Record.from_dict(record))
    for record in _records(RecordStore(folder / "groups.jsonl"), run, record_validation.check_group):
        values = [tuple(scalar(value) for value in group) for group in record["values"]]
        run.groups[record["row"], record["seed"], record["metric"]] = values
    return run


def _records(store: RecordStore, run: Run, check: Callable[[dict[str, Any]], None]) -> Iterator[dict[str, Any]]:
    """The checked records of a file, one after the other; the run counts the broken lines."""
    for line in store.lines():
        record = line.parsed()
        if record is None:
            run.dropped += 1
            continue
        with store.telling(line):
            check(record)
        yield record


def settings_hash(header: RunHead) -> str:
    """A digest of the request, independent of the libraries' versions."""
    compared = {key: value for key, value in header.raw.items() if key not in UNCOMPARED}
    return hashlib.sha256(json.dumps(compared, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def read_header(path: Path) -> RunHead:
    """A run's run.json. Raises DataError if it is invalid or was written by a newer version."""
    header = read_head(path)
    if header is None:
        raise DataError(f"{path.parent} is not a run: it has no {path.name}.")
    check_schema(header, path, SCHEMA)
    head = read_written(RunHead, header, "the head of a run", path)
    if len(head.text_numbers) not in (0, head.texts):
        raise DataError(
            f"cannot read {path}: it has {head.texts} texts, and {TEXT_NUMBERS} of {len(head.text_numbers)}."
        )
    return head


def head_of(values: Mapping[str, Any]) -> RunHead:
    """The header of a new run with this content."""
    # Through JSON, so that tuples equal the lists read from a file.
    return read_written(RunHead, json.loads(json.dumps(values)), "the head of a run", Path(HEADER))
