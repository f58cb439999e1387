"""Texts with their highest-scored units marked: the study's request, the marks, and their Markdown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from raison.core.results.explanation import Explanation
from raison.core.settings.fields import Setting
from raison.core.settings.tables import read
from raison.report.explanations.layout import AnswerPart, TextPiece, parts, pieces
from raison.report.pages.shown import Shown
from raison.report.style import phrases
from raison.report.tables.writers import escape_markdown
from raison.runs.headers import RowHead
from raison.runs.run import Run

_CONTROL = "random"
"""The method that is left out if a study names no rows."""

OPEN, CLOSE = "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}", "\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}"
"""The brackets around the explained answer in Markdown."""

_SPECIAL = str.maketrans({character: f"\\{character}" for character in "[]~$"})
"""Characters with a meaning in Markdown that tables do not already escape."""


@dataclass(frozen=True, slots=True)
class ExamplesAsked:
    """A study file's table [examples]: mark the `top` units of the first `texts` texts of each run.

    `rows` are labels of the table's rows, None for all but random scores. `mispredicted`: only texts whose explained
    class differs from the predicted one; with target = "label" these are the model's mistakes.
    """

    top: Annotated[int, Setting(least=1)] = 3
    texts: Annotated[int, Setting(least=1)] = 10
    rows: tuple[str, ...] | None = None
    mispredicted: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """One text as one row explains it. `text` is its number, counted from 0."""

    text: int
    method: str
    selected_by: str | None
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class Mark:
    """Some characters of a text; `rank` is 1 for the highest score, 0 where nothing is marked.

    `part` says whether they are in the explained answer.
    """

    text: str
    rank: int = 0
    part: AnswerPart | None = None


def asked_in(file: Mapping[str, Any]) -> ExamplesAsked | None:
    """The request of a parsed study file; None if it has no examples."""
    if "examples" not in file:
        return None
    return read(ExamplesAsked, file["examples"], "[examples]")[0]


def examples_of(
    run: Run, texts: Mapping[int, Sequence[Shown]], settings: ExamplesAsked
) -> tuple[tuple[Example, ...], ...]:
    """The examples of each text, with rows in the requested order."""
    rows = {row.label: row for row in run.header.rows}
    labels = _default_rows(rows) if settings.rows is None else settings.rows
    listed = []
    for number in chosen_texts(texts, settings):
        by_row = {one.record.row: one.explanation for one in texts[number]}
        in_order = [label for label in labels if label in by_row]
        listed.append(tuple(Example(number, rows[row].method, rows[row].selected_by, by_row[row]) for row in in_order))
    return tuple(examples for examples in listed if examples)


def chosen_texts(texts: Mapping[int, Sequence[Shown]], settings: ExamplesAsked) -> list[int]:
    """The numbers of the texts that are shown."""
    if not settings.mispredicted:
        return [number for number in texts if number < settings.texts]
    wrong = [
        number for number, rows in texts.items() if any(one.record.target != one.record.prediction for one in rows)
    ]
    return wrong[: settings.texts]


def highest(e: Explanation, top: int) -> tuple[int, ...]:
    """The units with the highest scores first, whatever their signs; ties keep the order of the text; no NaN."""
    finite = [unit for unit, score in enumerate(e.scores) if math.isfinite(score)]
    return tuple(sorted(finite, key=lambda unit: (-e.scores[unit], unit))[:top])


def marks(e: Explanation, top: int) -> tuple[tuple[Mark, ...], ...]:
    """Each of the one or two texts cut at its marks; joined, the marks of a text are the text.

    White space around a unit, which some tokens have, is not marked.
    """
    ranks = {unit: rank for rank, unit in enumerate(highest(e, top), start=1)}
    texts = [[mark for piece in text for mark in _cut(piece, ranks)] for text in pieces(e)]
    if e.answer is None:
        return tuple(map(tuple, texts))
    return tuple(tuple(_boxed(e, number, text)) for number, text in enumerate(texts))


def reading(e: Explanation, top: int) -> str:
    """The legend of the marks."""
    several = f"the {top} {e.unit}s with the highest scores; the highest one is underlined as well" if top > 1 else ""
    boxed = "" if e.answer is None else f" In a box ({OPEN} {CLOSE} in Markdown): the explained answer."
    one = several or f"the {e.unit} with the highest score"
    return f"In bold: {one}. Among equal scores, the earlier {e.unit} ranks first.{boxed}"


def beside(e: Explanation) -> str:
    """A remark if a class other than the predicted one was explained; "" otherwise."""
    is_predicted = e.target == e.prediction if e.answer is None else e.answer.is_predicted and e.target != e.classes[1]
    return "" if e.against is None and is_predicted else f"explained: {phrases.goal(e)}"


def markdown(examples: Sequence[Sequence[Example]], data: str, top: int) -> str:
    """A table with a line per text and row: marks in bold, the first one underlined as well."""
    lines = [_line("data set", "prediction", "model", "method", "selected by", "text"), f"|{' --- |' * 6}"]
    for one in (example for of_text in examples for example in of_text):
        e = one.explanation
        facts = [data, _prediction(e), e.model, one.method, one.selected_by or "–"]
        text = " / ".join("".join(_in_markdown(marked)).strip() for marked in marks(e, top))
        lines.append(_line(*map(escape_markdown, facts), text))
    return "\n".join(lines) + "\n"


def _default_rows(rows: Mapping[str, RowHead]) -> tuple[str, ...]:
    methods = tuple(label for label, row in rows.items() if row.method.partition("(")[0] != _CONTROL)
    return methods or tuple(rows)


def _cut(piece: TextPiece, ranks: Mapping[int, int]) -> Iterator[Mark]:
    rank = min((ranks[unit] for unit in piece.units if unit in ranks), default=0)
    core = piece.text.strip()
    if not rank or not core:
        yield Mark(piece.text, rank)
        return
    start = piece.text.index(core)
    around = (Mark(piece.text[:start]), Mark(core, rank), Mark(piece.text[start + len(core) :]))
    yield from (mark for mark in around if mark.text)


def _boxed(e: Explanation, number: int, text: Sequence[Mark]) -> Iterator[Mark]:
    """The marks cut where the answer begins and ends."""
    for mark, parts_of_mark in zip(text, parts(e, number, [mark.text for mark in text]), strict=True):
        yield from (Mark(part.text, mark.rank, part) for part in parts_of_mark)


def _prediction(e: Explanation) -> str:
    aside = beside(e)
    return phrases.verdict(e).line + (f" ({aside})" if aside else "")


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _in_markdown(marked: Sequence[Mark]) -> Iterator[str]:
    blank = Mark("")
    for before, mark, after in zip((blank, *marked[:-1]), marked, (*marked[1:], blank), strict=True):
        text = _flat(mark.text)
        if mark.part is not None and mark.part.opens:
            yield OPEN
        if mark.rank == 0:
            yield text
        elif mark.rank == 1:
            yield f"<u>**{text}**</u>"
        elif _takes_stars(before, mark, after):
            yield f"**{text}**"
        else:
            yield f"<strong>{text}</strong>"
        if mark.part is not None and mark.part.closes:
            yield CLOSE


def _takes_stars(before: Mark, mark: Mark, after: Mark) -> bool:
    """Whether stars around a mark make it bold: not next to other stars, and not between a letter and a full stop."""
    if before.rank or after.rank or not mark.text.strip():
        return False
    starts = mark.text[0].isalnum() or not before.text[-1:].strip()
    return starts and (mark.text[-1].isalnum() or not after.text[:1].strip())


def _flat(text: str) -> str:
    """Text for a line of Markdown, with one space for all white space, also at its ends."""
    start = " " if text[:1].isspace() else ""
    end = " " if text[-1:].isspace() and text.strip() else ""
    return start + escape_markdown(text).translate(_SPECIAL) + end
