"""Reuse of records: each has the digest of everything that determines it, its origin.

A study with more texts, methods or seeds takes over the records of a smaller one, even if texts are numbered
differently there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raison.jobs.store import RecordStore

ORIGIN, REUSED = "origin", "reused"
"""Entries of a record: its origin, and whether it was taken over from another folder."""


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of all records of a store. The values of `fields` form a record's key, and `digests` maps keys to
    origins."""

    fields: tuple[str, ...]
    digests: Mapping[Any, str]

    def stamped(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A record with its origin."""
        return {**record, ORIGIN: self.digests[self._key(record)]}

    def take_over(self, store: RecordStore, sources: Sequence[Path]) -> int:
        """Append the records that the store lacks from stores of its name in the sources; returns their number.

        Raises DataError if one cannot be read or written.
        """
        # A folder may contain any values: only strings are compared.
        there = {repr(self._key(line)) for line in store.read().records}
        missing: dict[str, list[tuple[Any, ...]]] = {}
        for key, digest in self.digests.items():
            if repr(tuple(key)) not in there:
                missing.setdefault(digest, []).append(key)
        taken = 0
        for path in (path for source in sources for path in stores_in(source, store.path.name)):
            lines = [
                {**line, **dict(zip(self.fields, key, strict=True)), REUSED: True}
                for line in RecordStore(path).read().records
                for key in missing.pop(str(line.get(ORIGIN)), ())
            ]
            store.append(lines)
            taken += len(lines)
        return taken

    def _key(self, record: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(record.get(field) for field in self.fields)


def stores_in(folder: Path, name: str) -> list[Path]:
    """The stores or files of this name in a folder and in those directly below it, including compressed ones and
    shards."""
    stem, _, suffix = name.partition(".")
    found = [path for place in ("", "*/") for path in folder.glob(f"{place}{stem}*.{suffix}*")]
    return sorted({path.parent / name for path in found if not path.name.startswith(".")})
