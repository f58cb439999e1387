"""Data sets of short texts, made from any data set."""

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated

from raison.core.errors import DataError
from raison.core.inputs.rationale import Span
from raison.core.inputs.unit import Text, segments
from raison.core.settings.fields import Setting
from raison.data.dataset import Dataset, Row
from raison.data.windows import around_answers


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long texts may be. The context of a question is cut first, then texts; last, texts are left out."""

    answer_window: Annotated[int | None, Setting("Cut contexts to this many words around the answer.", least=1)] = None
    first_words: Annotated[int | None, Setting("Cut texts after this many words.", least=1)] = None
    longest: Annotated[int | None, Setting("Leave out texts with more words than this.", least=1)] = None

    def of(self, data: Dataset) -> Dataset:
        """The data with texts of these lengths. Raises DataError."""
        cut = data if self.answer_window is None else around_answers(data, self.answer_window)
        cut = cut if self.first_words is None else first_words(cut, self.first_words)
        return cut if self.longest is None else at_most(cut, self.longest)


def first_words(data: Dataset, words: int) -> Dataset:
    """Every text cut after `words` words, with its rationales. Raises DataError for pairs."""
    return replace(
        data, name=f"{data.name}, the first {words} words", rows=tuple(_cut(row, words) for row in data.rows)
    )


def at_most(data: Dataset, words: int) -> Dataset:
    """The rows whose texts have at most `words` words."""
    rows = tuple(row for row in data.rows if words_in(row.text) <= words)
    return replace(data, name=f"{data.name}, texts of at most {words} words", rows=rows)


def words_in(text: Text) -> int:
    """Words of a text between white space, of both texts of a pair."""
    return sum(len(part.split()) for part in segments(text))


def _cut(row: Row, words: int) -> Row:
    if not isinstance(row.text, str):
        raise DataError("first_words is for single texts: use longest, truncate or (for questions) answer_window.")
    last = next(islice(re.finditer(r"\S+", row.text), words - 1, words), None)
    if last is None:
        return row
    end = last.end()
    marked = tuple(
        tuple(Span(span.start, min(span.end, end)) for span in marks if span.start < end) for marks in row.rationales
    )
    return replace(
        row, text=row.text[:end], rationales=marked, units=tuple(unit for unit in row.units if unit.end <= end)
    )
