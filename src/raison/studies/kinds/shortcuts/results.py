"""The folder of a study of shortcuts: for each model and each random draw, which words were found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raison.core.errors import DataError
from raison.core.settings.tables import read_written
from raison.jobs.folder import WorkKind
from raison.jobs.store import RecordStore
from raison.numerics.statistics.successes import share_interval
from raison.runs.judging import Learned
from raison.studies.claims import PairedSample
from raison.studies.folder import Claim, StudyHead, WrittenStudy, check_claimed, read_header

FOLDERS = (WorkKind("a study of shortcuts", "shortcuts.json"),)
FOUND = "found.jsonl"
PLANTED, BOTH = "planted", "both"
"""The rows of a share: the word in texts of one class, and in the same number of texts of all classes."""
RANDOM = "random"
"""The row of random scores, where any found word counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortcutClaim(Claim):
    """A claim about how often a row finds something, compared with another row or a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortcutsHead(StudyHead):
    """The request; `rows` are the names of the table's rows without the random one."""

    rows: tuple[str, ...]
    seeds: tuple[int, ...]
    draws: int
    majority: float
    claims: tuple[ShortcutClaim, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The result for one model's explanations, or for one draw of random scores.

    `found` says whether the planted word is among the words that decide, or under random scores any word. `words`
    counts these. `rank` is the planted word's place among them, `decided` and `expected` count its texts, `p` is
    corrected; all are 0, and p is 1, if it was not found. `accuracy` is the model's on unseen rows.
    """

    row: str
    seed: int
    draw: int = 0
    found: bool = False
    words: int = 0
    rank: int = 0
    decided: int = 0
    expected: float = 0.0
    p: float = 1.0
    accuracy: float | None = None


@dataclass(frozen=True, slots=True)
class Findings(WrittenStudy):
    """`found` has what each row found, by its seed and draw."""

    header: ShortcutsHead
    found: Mapping[str, Mapping[tuple[int, int], Found]]
    dropped: int = 0

    @property
    def progress(self) -> tuple[int, int]:
        """The number of models and draws so far, and the final number."""
        head = self.header
        return sum(map(len, self.found.values())), len(head.seeds) * (len(head.rows) + head.draws)


def rows_of(shares: Sequence[float]) -> tuple[str, ...]:
    """The rows of the table, without the random one."""
    return tuple(row_of(name, share) for share in shares for name in (PLANTED, BOTH))


def row_of(name: str, share: float) -> str:
    """One of them, as records and claims name it."""
    return f"{name} {share:g}"


def store_of(folder: Path, shard: int | None = None) -> RecordStore:
    """The store that a process writes to."""
    return RecordStore(folder / FOUND, shard)


def read(folder: Path) -> Findings:
    """What has been written so far. Raises DataError."""
    header, text = read_header(folder, FOLDERS[0], ShortcutsHead)
    records: dict[str, dict[tuple[int, int], Found]] = {row: {} for row in (*header.rows, RANDOM)}
    check_claimed(folder, "row", (row for claim in header.claims for row in claim.labels), records)
    stored = store_of(folder).read()
    for line in stored.records:
        one = read_written(Found, line, "a record", folder)
        if one.row not in records:
            raise DataError(f"{folder} has a record of the row '{one.row:.40}', which its study does not have.")
        records[one.row][one.seed, one.draw] = one
    return Findings(folder, header, text, records, stored.dropped)


def places(_results: Findings, _claim: ShortcutClaim) -> list[str]:
    """There is one set of models."""
    return ["models"]


def sample(results: Findings, claim: ShortcutClaim, _place: str) -> PairedSample | None:
    """Whether each model, or draw, has found something; compared with another row, under the same seeds."""
    row, than = claim.row, claim.than
    keys = sorted(
        results.found[row].keys() & results.found[than].keys() if isinstance(than, str) else results.found[row]
    )
    if not keys:
        return None
    first = _values(results, row, keys)
    second = _values(results, than, keys) if isinstance(than, str) else float(than)
    interval = None
    if not isinstance(than, str):
        low, high = share_interval(int(first.sum()), len(keys))
        interval = (low - float(than), high - float(than))
    means = float(np.mean(first)), float(np.mean(second))
    return PairedSample("share found", row, than, first, second, *means, learned(results, row), interval=interval)


def learned(results: Findings, row: str) -> Learned:
    """The mean accuracy of a row's models, or of all of them, on held-out rows."""
    rows = results.header.rows if row == RANDOM else (row,)
    known = [one.accuracy for name in rows for one in results.found[name].values() if one.accuracy is not None]
    return Learned(float(np.mean(known)) if known else np.nan, results.header.majority, "rows that were held out")


def _values(results: Findings, row: str, keys: Sequence[tuple[int, int]]) -> np.ndarray:
    return np.array([[float(results.found[row][key].found)] for key in keys])
