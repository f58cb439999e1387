"""Parses what a language model wrote about the importance of a text's units; only exact units count."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from raison.text.questions import Form, one_line

_RANKED = re.compile(r"([0-9]{1,6})[.):]\s+(\S.*)")
_SCORED = re.compile(r"(?:([0-9]{1,6})[.):]\s+)?(\S.*?)\s*[:=]\s*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))")
_THOUGHT = ("<think>", "</think>")
_QUOTES = (('"', '"'), ("'", "'"), ("“", "”"), ("`", "`"), ("**", "**"))


@dataclass(frozen=True, slots=True)
class SelfReport:
    """Scores of the units, zero for those that were not mentioned, and how much of the answer could be used.

    `invented` is the share of the lines in the requested form that name no unit of the text (0 if there is no such
    line), `missing` the share of units that no line names, `repeated` counts lines that name a unit once more,
    `unreadable` other lines that are not blank: words around the list, scores out of range.
    """

    scores: tuple[float, ...]
    invented: float
    missing: float
    repeated: int
    unreadable: int


class _UnitNames:
    """The units by their names; each can be taken once, equal names in the order of the text."""

    def __init__(self, units: Sequence[str]) -> None:
        self._units = [one_line(unit) for unit in units]
        self._free: dict[str, list[int]] = {}
        for number, unit in enumerate(self._units):
            # A token can be a part of a character, without text: it cannot be named.
            if unit:
                self._free.setdefault(unit, []).append(number)

    def known(self, name: str) -> bool:
        """Whether a unit has this name, taken or not."""
        return name in self._free

    def take(self, name: str, number: int | None = None) -> int | None:
        """The next unit of this name, or that with this number (from 1) if it has the name; None if all are taken."""
        free = self._free[name]
        if number is not None and number - 1 in free:
            free.remove(number - 1)
            return number - 1
        return free.pop(0) if free else None


def read_self_report(form: Form, answer: str, units: Sequence[str]) -> SelfReport:
    """Read an answer to `raison.text.questions`.

    A ranking: the k-th different unit named gets (n - k + 1) / n. A line is a number, one of . ) : and a unit, exactly
    as in the text, perhaps in quotes. If the numbers stop rising, a second list begins, which is not read. Scores: a
    unit, a colon or an equals sign and a number from -1 to 1, perhaps with the unit's number before it. A reasoning
    model's thoughts before its answer are skipped.
    """
    opened, closed = _THOUGHT
    # A thought that was cut off has no end, and no answer after it.
    report = answer.rpartition(closed)[2].partition(opened)[0]
    lines = [one_line(line) for line in report.splitlines() if line.strip()]
    read = _ranked if form == "rank" else _scored
    named = _UnitNames(units)
    scores: dict[int, float] = {}
    formed = invented = repeated = 0
    for line in read(lines, named.known):
        formed += 1
        if not named.known(line.name):
            invented += 1
            continue
        unit = named.take(line.name, line.number)
        if unit is None:
            repeated += 1
        else:
            scores[unit] = (len(units) - len(scores)) / len(units) if line.score is None else line.score
    return SelfReport(
        scores=tuple(scores.get(number, 0.0) for number in range(len(units))),
        invented=invented / formed if formed else 0.0,
        missing=1 - len(scores) / len(units),
        repeated=repeated,
        unreadable=len(lines) - formed,
    )


@dataclass(frozen=True, slots=True)
class _ReportedLine:
    """The content of one line of an answer: a unit, perhaps with its number, and its score unless the order gives
    it."""

    name: str
    number: int | None = None
    score: float | None = None


_Known = Callable[[str], bool]
"""Whether a unit has a name."""


def _ranked(lines: Sequence[str], known: _Known) -> Iterator[_ReportedLine]:
    latest = 0
    for line in lines:
        match = _RANKED.fullmatch(line)
        if match is None:
            continue
        rank = int(match[1])
        if rank <= latest:
            return
        latest = rank
        yield _ReportedLine(_unquoted(match[2], known))


def _scored(lines: Sequence[str], known: _Known) -> Iterator[_ReportedLine]:
    for line in lines:
        match = _SCORED.fullmatch(line)
        if match is None or abs(float(match[3])) > 1:
            continue
        yield _ReportedLine(_unquoted(match[2], known), None if match[1] is None else int(match[1]), float(match[3]))


def _unquoted(name: str, known: _Known) -> str:
    """The name without a pair of quotes around it, unless a unit has these itself."""
    if known(name):
        return name
    for first, last in _QUOTES:
        if len(name) > len(first + last) and name.startswith(first) and name.endswith(last):
            return name[len(first) : -len(last)].strip()
    return name
