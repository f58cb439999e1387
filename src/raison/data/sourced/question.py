"""A question with its sources, and those that are known to answer it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from raison.core.errors import DataError


@dataclass(frozen=True, slots=True)
class Passage:
    """Characters `start` to `end` (not included) of a source."""

    source: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class KnownSources:
    """A question, texts by id in the order of the prompt, the answer, and where the answer is known to occur.

    `gold` are the sources that contain it: each of them alone, or all of them together if `combined`. `sentences` are
    their sentences that matter. `against` are sources with another answer. `subject` is the subject of all sources,
    such as an article's title: questions with the same subject are not independent samples.
    """

    question: str
    sources: dict[str, str]
    answer: str
    gold: tuple[str, ...]
    sentences: tuple[Passage, ...]
    against: tuple[str, ...] = ()
    combined: bool = False
    subject: str = ""

    def __post_init__(self) -> None:
        unknown = {*self.gold, *self.against, *(one.source for one in self.sentences)} - self.sources.keys()
        if unknown or not self.gold:
            raise DataError(f"{self.question!r:.60}: gold names unknown sources ({sorted(unknown)}), or none at all.")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: a row for `raison.compare`; `raison cite --data` reads a file of such lines."""
        lists = {name: list(getattr(self, name)) for name in ("gold", "against")}
        return asdict(self) | lists | {"sentences": [asdict(one) for one in self.sentences]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "KnownSources":
        """The inverse of `to_dict`."""
        lists: dict[str, Sequence[str]] = {name: tuple(data[name]) for name in ("gold", "against")}
        return cls(**{**data, **lists, "sentences": tuple(Passage(**one) for one in data["sentences"])})
