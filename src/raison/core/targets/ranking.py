"""Why a model puts one document before another: texts (query, document, other document)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.errors import InputError
from raison.core.inputs.unit import Text, segments
from raison.core.targets.choices import is_whole_number

_BEFORE = " before "


@dataclass(frozen=True, slots=True)
class Ranked:
    """A query, and the documents that a model ranks for it: at least two. Raises InputError."""

    query: str
    documents: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.documents) < 2:
            raise InputError("a ranking needs at least two documents: give (query, [document, document, ...]).")

    def pair(self, first: int, second: int) -> tuple[str, str, str]:
        """The text for the question why the first document comes before the second; they are counted from 0."""
        return self.query, self.documents[first], self.documents[second]


def is_ranked(text: Text) -> bool:
    """Whether a text has a query and two documents."""
    return len(segments(text)) == 3


def before(first: int, second: int) -> str:
    """The name of the target, for documents counted from 0: "document 1 before document 2"."""
    return f"document {first + 1}{_BEFORE}document {second + 1}"


def documents_of(target: str) -> tuple[str, str]:
    """The names of the two documents in the target's name."""
    first, _, second = target.partition(_BEFORE)
    return first, second


def places_of(target: str) -> tuple[int, ...]:
    """The two documents in the target's name, counted from 0; none if it names no documents."""
    match = re.fullmatch(r"document (\d{1,9}) before document (\d{1,9})", target)
    return tuple(int(number) - 1 for number in match.groups()) if match else ()


def settled(spec: object, scores: Sequence[float]) -> tuple[int, int]:
    """The two documents to compare, counted from 0: those that the caller names, else the first two of the ranking.

    Raises InputError.
    """
    count = len(scores)
    if spec is None:
        first, second = sorted(range(count), key=lambda number: -scores[number])[:2]
        return first, second
    given = spec if isinstance(spec, tuple | list) and len(spec) == 2 else ()
    if not given or not all(_is_place(one, count) for one in given) or given[0] == given[1]:
        raise InputError(
            f"target is {spec!r:.60}: give two different documents of the {count}, counted from 0, such as "
            "target=(0, 1), or --target 0,1: why the first of them comes before the second."
        )
    return int(given[0]), int(given[1])


def _is_place(one: object, count: int) -> bool:
    """Whether it is the number of one of so many documents; NumPy's integers, as of argsort, are numbers, too."""
    return is_whole_number(one) and 0 <= int(one) < count
