"""Slices of a run's texts: filtered, sorted, cut."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from raison.core.errors import InputError, UnknownNameError
from raison.web.server.runs import Line

PLAIN = ("number", "units", "prediction", "confidence")
"""What lines are sorted by, besides metrics."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which texts are wanted; None asks nothing."""

    prediction: str | None = None
    target: str | None = None
    wrong: bool = False
    word: str | None = None
    top: str | None = None
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Which of the texts that are wanted: `count` from `start` on, in an order."""

    start: int = 0
    count: int = 50
    sort: str = "number"
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """Some texts of a row: of `texts` in all, `matching` were wanted."""

    texts: int
    matching: int
    start: int
    rows: tuple[Line, ...]


def slice_of(lines: Sequence[Line], wanted: Wanted, cut: Cut) -> Slice:
    """The slice. Raises UnknownNameError for an order that there is not, InputError for what the run does not know."""
    tests = list(_tests(wanted))
    if lines and lines[0].text is None and (wanted.word or wanted.top):
        raise InputError("this run holds records only, without texts: word and top are not known.")
    found = [line for line in lines if all(test(line) for test in tests)]
    key = _key(lines, cut.sort)
    found.sort(key=key, reverse=cut.descending)
    # What has no value stands behind all others, in either order.
    found.sort(key=lambda line: not key(line)[0])
    return Slice(len(lines), len(found), cut.start, tuple(found[cut.start : cut.start + cut.count]))


def _tests(wanted: Wanted) -> Iterator[Callable[[Line], bool]]:
    if wanted.prediction is not None:
        yield lambda line: line.prediction == wanted.prediction
    if wanted.target is not None:
        yield lambda line: line.target == wanted.target
    if wanted.wrong:
        yield lambda line: line.prediction != line.target
    if wanted.word:
        pattern = re.compile(rf"(?<!\w){re.escape(wanted.word)}(?!\w)", re.IGNORECASE)
        yield lambda line: any(pattern.search(text) for text in _strings(line))
    if wanted.top:
        yield lambda line: (line.top or "").casefold() == (wanted.top or "").casefold()
    yield lambda line: wanted.least <= line.units <= (math.inf if wanted.most is None else wanted.most)


def _strings(line: Line) -> list[str]:
    return [line.text] if isinstance(line.text, str) else line.text or []


def _key(lines: Sequence[Line], sort: str) -> Callable[[Line], tuple[bool, Any]]:
    metrics = list(lines[0].scores) if lines else []
    if sort in PLAIN:
        values: Callable[[Line], object] = {
            "number": lambda line: line.number,
            "units": lambda line: line.units,
            "prediction": lambda line: line.prediction,
            "confidence": lambda line: line.confidence,
        }[sort]
    elif sort in metrics:
        values = lambda line: _single(line.scores[sort])  # noqa: E731
    else:
        raise UnknownNameError("order", sort[:200], [*PLAIN, *metrics])
    return lambda line: ((value := values(line)) is not None, 0 if value is None else value)


def _single(score: object) -> object:
    """A metric's number; of a value of several parts the first."""
    return score[0] if isinstance(score, list) else score
