"""The folder of a whole file's explanations.

manifest.json              the request: sources, model, method, settings, and the columns' meaning
explanations/00000.parquet the rows, in shards (or .jsonl)
receipts/00000.json        summary of a shard: numbers, the digest of its file, rows that were rejected
work/00000.jsonl           the finished parts of a shard that is not complete
rejected.jsonl             rows without an explanation, each with its reason; once all shards are there
summary.json               the summary of all rows; once all shards are there
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import DataError, InputError
from raison.core.settings.tables import read_written
from raison.data.class_labels import known_classes
from raison.jobs.file_digest import sha256_of
from raison.jobs.folder import EXPLANATIONS, read_marker
from raison.jobs.store import read_record
from raison.runs.files import shards
from raison.runs.files.flat_records import Explains, FlatRecord
from raison.runs.files.shards import Format
from raison.runs.headers import Raw
from raison.runs.record_validation import check_schema

SCHEMA = 1
SHARDS, RECEIPTS, WORK = "explanations", "receipts", "work"
REJECTED, SUMMARY = "rejected.jsonl", "summary.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The request. `explains` is what the rows contain, `raw` the whole file."""

    sources: tuple[str, ...]
    rows: int
    shards: int
    format: Format
    model: str
    method: str
    outputs: str
    raw: Raw
    explains: Explains = "predictions"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row without an explanation."""

    row: int
    source: str
    line: int
    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """The summary of a complete shard. `bytes` and `file_sha256` describe its file."""

    rows: int
    explanations: int
    rejected: tuple[Rejected, ...]
    evaluations: int
    gradients: int
    seconds: float
    bytes: int
    file_sha256: str


@dataclass(frozen=True, slots=True)
class Folder:
    """Paths in the folder of explanations of a format, by the number of a shard."""

    path: Path
    format: Format

    def shard(self, number: int) -> Path:
        """The rows."""
        return self.path / SHARDS / f"{number:05}.{self.format}"

    def receipt(self, number: int) -> Path:
        """Their receipt."""
        return self.path / RECEIPTS / f"{number:05}.json"

    def work(self, number: int) -> Path:
        """The finished parts of an incomplete shard."""
        return self.path / WORK / f"{number:05}.jsonl"

    def lock(self, number: int) -> Path:
        """The lock of the process that does a shard."""
        return self.path / WORK / f".{number:05}.lock"

    def finished(self, count: int) -> list[int]:
        """The shards, of `count`, that have a receipt: the folder is listed, because a manifest may say any count."""
        names = {path.name.partition(".")[0] for path in (self.path / RECEIPTS).glob("*.json*")}
        return sorted(int(name) for name in names if name.isdecimal() and int(name) < count)

    def known(self, number: int) -> Receipt | None:
        """The receipt of a complete shard; None for another. Raises DataError."""
        path = self.receipt(number)
        receipt = read_record(path)
        return None if receipt is None else read_written(Receipt, receipt, "the receipt of a shard", path)


@dataclass(frozen=True, slots=True)
class WrittenShards:
    """What has been written so far: the manifest, and the receipts of the complete shards by their numbers."""

    folder: Folder
    manifest: Manifest
    receipts: dict[int, Receipt]

    @property
    def done(self) -> int:
        """The number of rows in complete shards, including rejected ones."""
        return sum(receipt.rows for receipt in self.receipts.values())

    @property
    def is_complete(self) -> bool:
        """Whether every shard is there."""
        return len(self.receipts) == self.manifest.shards

    @property
    def rejected(self) -> Iterator[Rejected]:
        """Every row without an explanation, in the order of the rows."""
        return (one for receipt in self.receipts.values() for one in receipt.rejected)

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[FlatRecord]:
        """The rows of all complete shards in their order. Raises DataError for a file that was changed."""
        for number in self.receipts:
            yield from self.of_shard(number, columns)

    def errors(self) -> Iterator[FlatRecord]:
        """The rows whose label is another class than the prediction, in their order. All rows are read twice.

        Labels are words in any case, or numbers, as in `Dataset.class_indices`; rows without one, or with one that is
        no class, are left out, as in the report's count. Raises InputError if no label is one of the model's classes,
        and DataError for a file that was changed.
        """
        first = next(self.rows(["classes", "outputs"]), None)
        if first is None:
            return
        if first["outputs"] == "labels":
            raise InputError(f"{self.folder.path} explains a model of several labels: a column of labels judges none.")
        if first["outputs"] != "classes":
            raise InputError(f"{self.folder.path} explains a model without classes, so no label can be wrong.")
        labels = [str(row["label"] or "") for row in self.rows(["label"])]
        known, why = known_classes(labels, tuple(first["classes"]))
        if why and not any(known):
            raise InputError(f"{self.folder.path}: {why}.")
        for row, label in zip(self.rows(), known, strict=True):
            if label is not None and label != row["prediction"]:
                yield row

    def of_shard(self, number: int, columns: Sequence[str] | None = None) -> Iterator[FlatRecord]:
        """The rows of a complete shard. Raises DataError for a file that was changed."""
        path = self.folder.shard(number)
        try:
            digest = sha256_of([path])
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}.") from None
        if digest != self.receipts[number].file_sha256:
            raise DataError(
                f"{path} was changed after it was written (its digest does not match): restore it, or delete "
                f"{self.folder.receipt(number)} and start again to explain its rows again."
            )
        yield from shards.read(path, columns)


def is_folder(path: Path) -> bool:
    """Whether it contains explanations of files."""
    return (path / EXPLANATIONS.marker).is_file()


def read(path: Path) -> WrittenShards:
    """The contents of a folder. Raises DataError if it is not such a folder."""
    head = read_marker(path, EXPLANATIONS)
    if head is None:
        raise DataError(f"{path} is not a folder of explanations of files: it has no {EXPLANATIONS.marker}.")
    check_schema(head, path / EXPLANATIONS.marker, SCHEMA)
    manifest = read_written(Manifest, head, "a manifest", path / EXPLANATIONS.marker)
    folder = Folder(path, manifest.format)
    known = ((number, folder.known(number)) for number in folder.finished(manifest.shards))
    return WrittenShards(folder, manifest, {number: receipt for number, receipt in known if receipt is not None})
