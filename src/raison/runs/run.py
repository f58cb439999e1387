"""A run: what was asked, and the records of every text, in memory or in a folder that survives kills.

    run.json            what was asked, with the schema's version and those of the libraries
    records.jsonl       one line per row, seed and text: scores and costs, no text
    explanations.jsonl  the same keys with the whole explanations, texts included
    groups.jsonl        the values of metrics that judge many texts together

Records are enough for every table; they hold nothing of the texts, so that they can be published where the texts
cannot. Each file may also be there as .jsonl.gz, to read from.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.core.explanation import Explanation
from raison.data.records import RecordStore, write_whole
from raison.runs.summary import Costs, Value

SCHEMA = 1
HEADER = "run.json"
UNCOMPARED = ("versions",)
"""Parts of the header in which a continued run may differ."""

Key = tuple[str, int, int]
"""Row, seed, text."""


@dataclass(frozen=True, slots=True)
class Record:
    """One explanation's scores by the run's metrics of single texts, in their order, and its cost."""

    row: str
    seed: int
    text: int
    scores: tuple[Value, ...]
    costs: Costs
    target: str
    prediction: str
    units: int

    @property
    def key(self) -> Key:
        return (self.row, self.seed, self.text)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; NaN becomes None."""
        return {
            "row": self.row,
            "seed": self.seed,
            "text": self.text,
            "scores": [_plain(score) for score in self.scores],
            "evaluations": self.costs.evaluations,
            "gradients": self.costs.gradients,
            "seconds": self.costs.seconds,
            "target": self.target,
            "prediction": self.prediction,
            "units": self.units,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Record":
        """The inverse of `to_dict`."""
        costs = Costs(data["evaluations"], data["gradients"], data["seconds"])
        scores = tuple(_number(score) for score in data["scores"])
        return cls(
            data["row"], data["seed"], data["text"], scores, costs, data["target"], data["prediction"], data["units"]
        )


@dataclass
class Run:
    """`dropped` counts broken lines that were left out when the folder was read; their work is done again."""

    header: dict[str, Any]
    folder: Path | None = None
    records: dict[Key, Record] = field(default_factory=dict)
    groups: dict[tuple[str, int, str], list[tuple[float, ...]]] = field(default_factory=dict)
    dropped: int = 0
    _kept: dict[Key, Explanation] = field(default_factory=dict)

    def add(self, rows: Sequence[tuple[Record, Explanation]]) -> None:
        """Keep these; in a folder they are on the disk when this returns. Raises DataError when it is full."""
        if self.folder is None:
            self._kept.update({record.key: explanation for record, explanation in rows})
        else:
            # Records last: a text that has a record has everything.
            self._store("explanations").append(
                {"row": r.row, "seed": r.seed, "text": r.text, "explanation": e.to_dict()} for r, e in rows
            )
            self._store("records").append(record.to_dict() for record, _ in rows)
        self.records.update({record.key: record for record, _ in rows})

    def add_records(self, records: Sequence[Record]) -> None:
        """Keep records whose explanations are not at hand. Raises DataError when the disk is full."""
        if self.folder is not None:
            self._store("records").append(record.to_dict() for record in records)
        self.records.update({record.key: record for record in records})

    def add_groups(self, row: str, seed: int, metric: str, values: Sequence[tuple[float, ...]]) -> None:
        """Keep the values of all groups of one row."""
        if self.folder is not None:
            plain = [[_plain(value) for value in group] for group in values]
            self._store("groups").append([{"row": row, "seed": seed, "metric": metric, "values": plain}])
        self.groups[row, seed, metric] = list(values)

    def explanations(self, row: str, seed: int) -> list[Explanation]:
        """Those of all texts. Raises DataError where the folder holds records only."""
        source = self._explained
        missing = [text for text in range(self.header["texts"]) if (row, seed, text) not in source]
        if missing:
            raise DataError(
                f"{self.folder} has no explanation by {row} of text {missing[0] + 1}: it holds records only. "
                "Run it again in an empty folder to have the explanations too."
            )
        return [source[row, seed, text] for text in range(self.header["texts"])]

    @property
    def has_explanations(self) -> bool:
        """Whether the explanations behind the records are there."""
        return bool(self.records) and self.records.keys() <= self._explained.keys()

    def explains(self, row: str, seed: int) -> bool:
        """Whether the explanations of one row are there, of all texts."""
        return all((row, seed, text) in self._explained for text in range(self.header["texts"]))

    @property
    def _explained(self) -> dict[Key, Explanation]:
        return self._kept if self.folder is None else self._read_explanations

    @cached_property
    def _read_explanations(self) -> dict[Key, Explanation]:
        stored = self._store("explanations").read()
        return {
            (line["row"], line["seed"], line["text"]): Explanation.from_dict(line["explanation"])
            for line in stored.records
        }

    def _store(self, name: str) -> RecordStore:
        assert self.folder is not None
        return RecordStore(self.folder / f"{name}.jsonl")


def open_run(header: dict[str, Any], folder: Path | None) -> Run:
    """A run to go on with. Raises DataError for a folder that holds another one."""
    if folder is None:
        return Run(header)
    path = folder / HEADER
    if path.exists():
        known = read_header(path)
        keys = (header.keys() | known.keys()) - set(UNCOMPARED)
        differing = sorted(key for key in keys if header.get(key) != known.get(key))
        if differing:
            raise DataError(
                f"{folder} holds another run (it differs in {', '.join(differing)}): choose another folder for --out, "
                "or delete this one."
            )
    else:
        write_whole(path, json.dumps(header, ensure_ascii=False, indent=1) + "\n")
    return read_run(folder)


def read_run(folder: Path) -> Run:
    """What a folder holds. Raises DataError if it is no run's or was written by a newer version."""
    run = Run(read_header(folder / HEADER), folder)
    records, groups = RecordStore(folder / "records.jsonl").read(), RecordStore(folder / "groups.jsonl").read()
    run.dropped = records.dropped + groups.dropped
    for line in records.records:
        record = Record.from_dict(line)
        run.records[record.key] = record
    for line in groups.records:
        values = [tuple(_scalar(value) for value in group) for group in line["values"]]
        run.groups[line["row"], line["seed"], line["metric"]] = values
    return run


def settings_hash(header: dict[str, Any]) -> str:
    """Names what was asked: the same for equal requests, whatever the libraries' versions."""
    asked = {key: value for key, value in header.items() if key not in UNCOMPARED}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def read_header(path: Path) -> dict[str, Any]:
    """A run's run.json. Raises DataError if it is none or was written by a newer version."""
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path.parent} is no run: it has no {path.name}.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}.") from None
    if not isinstance(header, dict) or header.get("schema", 0) > SCHEMA:
        raise DataError(f"{path} was written by a newer version of raison: this one reads schemas up to {SCHEMA}.")
    return header


def _plain(value: Value) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return None if math.isnan(value) else value


def _number(value: Any) -> Value:
    return tuple(_scalar(part) for part in value) if isinstance(value, list) else _scalar(value)


def _scalar(value: Any) -> float:
    return math.nan if value is None else float(value)
