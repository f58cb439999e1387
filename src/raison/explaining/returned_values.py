"""What a metric returned, checked before it is averaged: a mistake in a metric must not become a value or a gap."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from raison.core.errors import AnswerError
from raison.core.metric import GroupMetric, KeepRows, Metric
from raison.core.results.explanation import Explanation
from raison.core.settings.settled import plain
from raison.runs.summary import Value, parts_of

UNDEFINED = "or NaN where it is undefined"


def checked_value(value: object, metric: Metric, text: object) -> Value:
    """A metric's value on one text, in Python's own numbers. Raises AnswerError unless it is what its pool needs."""
    parts = parts_of(metric.pool)
    found = plain(value)
    numbers = found if parts > 1 else (found,)
    if isinstance(numbers, tuple) and len(numbers) == parts and all(map(_is_value, numbers)):
        return tuple(map(float, numbers)) if parts > 1 else float(numbers[0])
    expected = f"a float, {UNDEFINED}"
    if parts > 1:
        expected = f"a tuple of {parts} floats, as its pool '{metric.pool}' needs, each NaN where it is undefined"
    raise _unfit(metric, value, f"{str(text)!r:.60}", expected)


def checked_values(values: object, metric: GroupMetric, texts: int) -> tuple[float, ...]:
    """A metric's values on a group of texts, likewise."""
    listed = values.tolist() if isinstance(values, np.ndarray) else plain(values)
    if isinstance(listed, tuple | list) and listed and all(map(_is_value, listed)):
        return tuple(map(float, listed))
    raise _unfit(metric, values, f"a group of {texts} texts", f"a list of one or more floats, {UNDEFINED}")


def announced(metric: Metric, explanation: Explanation) -> Mapping[str, KeepRows]:
    """The keeps that a metric announces, by removal. Raises AnswerError unless they fit the text's units."""
    keeps: object = metric.keeps(explanation)
    if not isinstance(keeps, Mapping) or not all(isinstance(removal, str) for removal in keeps):
        found = " ".join(repr(keeps).split())[:60]
        raise AnswerError(
            f"{type(metric).__name__}.keeps returned {found} on {str(explanation.text)!r:.60}: return a dict from "
            "removals, such as IN_PLACE, to keeps."
        )
    for rows in keeps.values():
        check_keeps(rows, metric, "keeps", explanation.text, len(explanation.units))
    return keeps


def check_keeps(keeps: object, metric: Metric | None, function: str, text: object, units: int) -> None:
    """Raise AnswerError unless the keeps that a metric asks for, by one of its functions, fit the text's units."""
    found = f"an object of type {type(keeps).__name__}"
    if isinstance(keeps, np.ndarray):
        if keeps.dtype == bool and keeps.ndim == 2 and keeps.shape[1] == units:
            return
        found = f"an array of shape {' x '.join(map(str, keeps.shape)) or 'none'} and type {keeps.dtype}"
    owner = "a metric" if metric is None else f"{type(metric).__name__}.{function}"
    raise AnswerError(
        f"{owner} asks for keeps as {found}, on {str(text)!r:.60} of {units} units: give a numpy array of masks x "
        f"{units} of type bool, True for the units that stay."
    )


def check_counts(values: Sequence[Sequence[float]], others: Sequence[Sequence[float]], metric: GroupMetric) -> None:
    """Raise AnswerError unless there are as many values as of another method or seed: groups are compared in pairs."""
    counts, expected = [len(group) for group in values], [len(group) for group in others]
    if counts != expected:
        raise AnswerError(
            f"{type(metric).__name__}.measure returned {sum(counts)} values for one method or seed, and "
            f"{sum(expected)} for another: return as many for the same texts."
        )


def _is_value(number: object) -> bool:
    return isinstance(number, int | float) and not math.isinf(number)


def _unfit(metric: Metric | GroupMetric, value: object, on: str, expected: str) -> AnswerError:
    found = " ".join(repr(value).split())[:60]
    return AnswerError(f"{type(metric).__name__}.measure returned {found} on {on}: return {expected}.")
