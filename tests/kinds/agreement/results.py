"""The folder of a study of agreement: each text's rank correlation of every two methods' scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from raison.jobs.folder import WorkKind
from raison.jobs.store import RecordStore
from raison.runs.judging import Learned
from raison.studies.claims import PairedSample
from raison.studies.folder import Claim, StudyHead, WrittenStudy, read_header

FOLDERS = (WorkKind("a study of agreement", "agreements.json"),)
STORE = "agreements.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairClaim(Claim):
    """A claim about a pair of methods, "one & other", beside another pair or a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementHead(StudyHead):
    """What was asked."""

    methods: tuple[str, ...]
    texts: int
    claims: tuple[PairClaim, ...]


@dataclass(frozen=True, slots=True)
class Agreements(WrittenStudy):
    """`values` has, for each pair, those of the texts by their numbers."""

    header: AgreementHead
    values: Mapping[tuple[str, str], Mapping[int, float]]
    dropped: int = 0

    @property
    def progress(self) -> tuple[int, int]:
        """Texts of all pairs."""
        return sum(map(len, self.values.values())), len(self.values) * self.header.texts


def store_of(folder: Path, shard: int | None = None) -> RecordStore:
    """Where a process writes."""
    return RecordStore(folder / STORE, shard)


def read(folder: Path) -> Agreements:
    """What has been written so far. Raises DataError."""
    header, text = read_header(folder, FOLDERS[0], AgreementHead)
    values: dict[tuple[str, str], dict[int, float]] = {pair: {} for pair in combinations(header.methods, 2)}
    stored = store_of(folder).read()
    for line in stored.records:
        values[line["first"], line["second"]][line["text"]] = line["value"]
    return Agreements(folder, header, text, values, stored.dropped)


def places(_results: Agreements, _claim: PairClaim) -> list[str]:
    """There is one set of texts."""
    return ["texts"]


def sample(results: Agreements, claim: PairClaim, _place: str) -> PairedSample:
    """The texts' correlations of one pair, and those of another one or a number."""
    named = {f"{one} & {other}": found for (one, other), found in results.values.items()}
    row, than = claim.row, claim.than
    shared = sorted(named[row].keys() & named[than].keys() if isinstance(than, str) else named[row])
    first = np.array([[named[row][text]] for text in shared]).reshape(-1, 1)
    second = np.array([[named[than][text]] for text in shared]).reshape(-1, 1) if isinstance(than, str) else float(than)
    means = (float(np.mean(values)) if shared else np.nan for values in (first, second))
    return PairedSample("rank correlation", row, than, first, second, *means, Learned(1.0, 0.0))
