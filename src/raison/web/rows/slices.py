"""Slices of a run's texts: filtered, sorted, cut, and how often the model is right there."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from raison.core.errors import InputError, UnknownNameError
from raison.numerics.statistics.successes import share_interval
from raison.text.surrogates import without_surrogates
from raison.web.rows.lines import RunLine

ORDERS: Mapping[str, Callable[[RunLine], object]] = {
    "number": lambda line: line.number,
    "units": lambda line: line.units,
    "prediction": lambda line: line.prediction,
    "label": lambda line: line.label,
    "target": lambda line: line.target,
    "confidence": lambda line: line.confidence,
    "value": lambda line: line.value,
    "size": lambda line: line.size,
    "top": lambda line: None if line.top is None else line.top.casefold(),
}
"""The orders of lines, besides metrics."""
LONGEST = 200
"""Maximum number of lines of a slice."""


@dataclass(frozen=True, slots=True)
class TextFilter:
    """A filter of texts; None means no condition."""

    prediction: str | None = None
    target: str | None = None
    label: str | None = None
    wrong: bool = False
    word: str | None = None
    top: str | None = None
    least: int = 0
    most: int | None = None
    surer: float = 0.0
    unsurer: float = 1.0
    above: float | None = None
    below: float | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of the matching texts: `count` from `start` on, in an order."""

    start: int = 0
    count: int = 50
    sort: str = "number"
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The share of texts whose prediction is their own label, with Wilson's 95 % interval."""

    texts: int
    right: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Slice:
    """Some texts of a row: `matching` of all `texts` pass the filter. Without labels there is no accuracy."""

    texts: int
    matching: int
    accuracy: Accuracy | None
    start: int
    rows: tuple[RunLine, ...]


def slice_of(lines: Sequence[RunLine], wanted: TextFilter, cut: Cut) -> Slice:
    """The slice. Raises UnknownNameError for an unknown order, InputError for data that the run lacks."""
    tests = list(_tests(wanted, lines))
    if lines and (wanted.wrong or wanted.label is not None) and all(line.label is None for line in lines):
        raise InputError("wrong and label need the texts' own labels, and this run has none.")
    if lines and all(line.text is None for line in lines) and (wanted.word or wanted.top):
        raise InputError("this run has only records, without texts: word and top cannot be used.")
    matching = [line for line in lines if all(test(line) for test in tests)]
    key = _key(lines, cut.sort)
    matching.sort(key=key, reverse=cut.descending)
    # Lines without a value come last in either order.
    matching.sort(key=lambda line: not key(line)[0])
    return Slice(
        texts=len(lines),
        matching=len(matching),
        accuracy=accuracy_of(matching),
        start=cut.start,
        rows=tuple(map(_sendable, matching[cut.start : cut.start + cut.count])),
    )


def _sendable(line: RunLine) -> RunLine:
    """The line with a replacement character for every lone surrogate, which no response can hold."""
    text = line.text if line.text is None else [without_surrogates(one) for one in _strings(line)]
    return replace(
        line,
        id=without_surrogates(line.id),
        text=text[0] if text and isinstance(line.text, str) else text,
        top=None if line.top is None else without_surrogates(line.top),
        prediction=without_surrogates(line.prediction),
        target=without_surrogates(line.target),
        strongest=tuple(
            replace(one, text=without_surrogates(one.text), said=without_surrogates(one.said)) for one in line.strongest
        ),
    )


def accuracy_of(lines: Sequence[RunLine]) -> Accuracy | None:
    """The accuracy over the lines with a known label; None without any."""
    judged = [line.prediction == line.label for line in lines if line.label is not None]
    if not judged:
        return None
    right, texts = sum(judged), len(judged)
    return Accuracy(texts, right, right / texts, *share_interval(right, texts))


def _tests(wanted: TextFilter, lines: Sequence[RunLine]) -> Iterator[Callable[[RunLine], bool]]:
    if wanted.prediction is not None:
        yield lambda line: line.prediction == wanted.prediction
    if wanted.target is not None:
        yield lambda line: line.target == wanted.target
    if wanted.label is not None:
        yield lambda line: line.label == wanted.label
    if wanted.wrong:
        yield lambda line: line.label is not None and line.prediction != line.label
    if wanted.word:
        yield _contains(wanted.word, lines)
    if wanted.top:
        yield lambda line: (line.top or "").casefold() == (wanted.top or "").casefold()
    yield lambda line: wanted.least <= line.units <= (math.inf if wanted.most is None else wanted.most)
    if (wanted.surer, wanted.unsurer) != (0.0, 1.0):
        yield lambda line: line.confidence is not None and wanted.surer <= line.confidence <= wanted.unsurer
    if wanted.above is not None:
        yield lambda line: line.value is not None and line.value >= (wanted.above or 0.0)
    if wanted.below is not None:
        yield lambda line: line.value is not None and line.value <= (wanted.below or 0.0)


def _contains(word: str, lines: Sequence[RunLine]) -> Callable[[RunLine], bool]:
    """Whether a text contains a whole word; or the same letters, if it is a whole word in no text: a part of a word, or
    one of a language that writes without spaces."""
    whole, part = (
        re.compile(pattern, re.IGNORECASE) for pattern in (rf"(?<!\w){re.escape(word)}(?!\w)", re.escape(word))
    )

    def found(pattern: re.Pattern[str], line: RunLine) -> bool:
        return any(pattern.search(text) for text in _strings(line))

    pattern = whole if any(found(whole, line) for line in lines) else part
    return lambda line: found(pattern, line)


def _strings(line: RunLine) -> list[str]:
    return [line.text] if isinstance(line.text, str) else line.text or []


def _key(lines: Sequence[RunLine], sort: str) -> Callable[[RunLine], tuple[bool, Any]]:
    metrics = list(lines[0].scores) if lines else []
    if sort not in ORDERS and sort not in metrics:
        raise UnknownNameError("order", sort[:200], [*ORDERS, *metrics])

    def key(line: RunLine) -> tuple[bool, Any]:
        value = ORDERS[sort](line) if sort in ORDERS else _single(line.scores[sort])
        return value is not None, 0 if value is None else value

    return key


def _single(score: object) -> object:
    """A metric's number; the first part of a value of several parts."""
    return score[0] if isinstance(score, list) else score
