"""A first pass over all rows: their number, their division into parts, and digests that detect changes."""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from raison.core.errors import DataError
from raison.core.inputs.parts import written
from raison.data import Row
from raison.data.dataset import BrokenLine
from raison.data.rows import Entry
from raison.data.streams import Item, Reading, stream

ROWS = 64
CHARACTERS = 65_536
"""Maximum number of rows and of characters of a part, so that a part holds few long texts."""
SHARDS = 64
"""Number of shards of an input with enough parts, so that several processes get similar amounts of work."""
LARGEST = 128
"""Maximum number of parts of a shard, which bounds the size of its file."""


Stream = Callable[[Sequence[str], Reading], Iterator[Item]]
"""What reads sources one row at a time."""


@dataclass(frozen=True, slots=True)
class Input:
    """Sources and how they are read. `together` is how many rows a part has at most, if less than ROWS."""

    sources: tuple[str, ...]
    reading: Reading
    stream: Stream = stream
    together: int = ROWS

    @property
    def named(self) -> str:
        """The sources, for errors."""
        return ", ".join(self.sources)

    def items(self) -> Iterator[Item]:
        """The rows from the first on. Raises DataError."""
        return self.stream(self.sources, self.reading)


@dataclass(frozen=True, slots=True)
class RowPart:
    """Rows that are explained and written together, always the same ones, so that every run has the same batches."""

    start: int
    rows: int
    characters: int
    digest: int


@dataclass(frozen=True)
class Survey:
    """All rows of some input, by parts."""

    input: Input
    parts: tuple[RowPart, ...]
    sha256: str

    @property
    def rows(self) -> int:
        """The number of rows, including unusable ones."""
        return sum(part.rows for part in self.parts)

    @cached_property
    def shards(self) -> tuple[tuple[RowPart, ...], ...]:
        """The parts of each shard."""
        size = min(LARGEST, -(-len(self.parts) // SHARDS))
        return tuple(self.parts[start : start + size] for start in range(0, len(self.parts), size))


def survey(given: Input) -> Survey:
    """Read all rows once. Raises DataError if none is usable."""
    parts, whole, usable = [], hashlib.sha256(), False
    first: Item | None = None
    for start, items in _parted(given.items(), min(given.together, ROWS)):
        digest = _digest(items)
        whole.update(digest.to_bytes(4, "big"))
        parts.append(RowPart(start, len(items), sum(map(_size, items)), digest))
        usable = usable or any(isinstance(item.entry, Row) for item in items)
        first = first or items[0]
    if not usable:
        why = f" Line {first.line}: {first.entry.reason}." if first and isinstance(first.entry, BrokenLine) else ""
        raise DataError(f"{given.named}: no row has an explainable text.{why}")
    return Survey(given, tuple(parts), whole.hexdigest())


@dataclass
class Cursor:
    """Reads parts of the rows in any order, without rereading if they come in file order."""

    survey: Survey
    _items: Iterator[Item] = field(default_factory=lambda: iter(()))
    _next: int | None = None

    def part(self, part: RowPart) -> list[Item]:
        """Its rows. Raises DataError if they have changed since the survey."""
        if self._next is None or part.start < self._next:
            self._items, self._next = self.survey.input.items(), 0
        items = list(islice(self._items, part.start - self._next, part.start - self._next + part.rows))
        self._next = part.start + part.rows
        if _digest(items) != part.digest:
            raise DataError(
                f"{self.survey.input.named}: rows {part.start} to {self._next - 1} changed while they were read. "
                "Restore them and start again, or choose another folder for --out."
            )
        return items


def _parted(items: Iterator[Item], together: int) -> Iterator[tuple[int, list[Item]]]:
    held: list[Item] = []
    size = 0
    for item in items:
        if held and (len(held) == together or size + _size(item) > CHARACTERS):
            yield held[0].row, held
            held, size = [], 0
        held.append(item)
        size += _size(item)
    if held:
        yield held[0].row, held


def _size(item: Item) -> int:
    """Characters of a row; a line that cannot be used counts as one."""
    if not isinstance(item.entry, Row):
        return 1
    text, question = item.entry.text, item.entry.asked
    sources = "" if question is None else "".join((question.sources or {}).values())
    return len(sources) + len(item.entry.output or "") + (len(text) if isinstance(text, str) else sum(map(len, text)))


def _digest(items: Sequence[Item]) -> int:
    contents = [(item.id, item.label, item.line, _said(item.entry)) for item in items]
    return zlib.crc32(repr(contents).encode("utf-8", "surrogatepass"))


def _said(entry: Entry) -> object:
    if not isinstance(entry, Row):
        return entry.reason
    if entry.asked is not None:
        return entry.asked
    text = written(entry.given)
    others = [one for one in (entry.contrast, entry.output) if one is not None]
    return (text, *others) if others else text
