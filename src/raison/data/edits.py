"""Edits as truth: texts of a data set that differ in a few words and in their label."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import combinations, pairwise

from raison.core.errors import DataError
from raison.core.inputs.rationale import Rationale, Span
from raison.core.inputs.unit import Text, segments
from raison.data.dataset import Dataset, Row
from raison.text.segment import word_spans

_GROUP = 16
"""Maximum number of texts of one group that are compared with each other."""


def edits_as_truth(dataset: Dataset, words: int = 3) -> Dataset:
    """Rows that differ from another row in at most `words` words and in their label; these words are the rationale.

    If the labels are right, the difference between them cannot be due to the words that both texts share. Pairs are
    compared with pairs of the same first text. Single texts are compared with their neighbours in the data set, because
    files of edited texts list an original and its revisions one after the other. Words are compared ignoring case. Each
    text is used for one edit, the smallest; a text that only lost words has no changed word and is left out. The new
    rationale replaces those of the row.

    Raises DataError for a number of words below 1, and if no two texts differ so little.
    """
    if words < 1:
        raise DataError(f"an edit of {words} words changes nothing: give a whole number, 1 or more.")
    smallest: dict[int, tuple[int, Rationale]] = {}
    for one, other in _candidates(dataset.rows):
        if one.label == other.label or one.label is None or other.label is None:
            continue
        marks = _changed(one.text, other.text)
        size = max(len(marks[0]), len(marks[1]))
        if 0 < size <= words:
            for row, mark in zip((one, other), marks, strict=True):
                if mark and (row.number not in smallest or size < smallest[row.number][0]):
                    smallest[row.number] = (size, mark)
    if not smallest:
        raise DataError(f"{dataset.name}: no two texts with different labels differ in at most {words} words.")
    rows = tuple(replace(row, rationales=(smallest[row.number][1],)) for row in dataset.rows if row.number in smallest)
    return replace(dataset, name=f"{dataset.name}, edits of at most {words} words", rows=rows)


def _candidates(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Rows that may be edits of each other."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if not isinstance(row.text, str):
            groups[row.text[0]].append(row)
    for group in groups.values():
        yield from combinations(group[:_GROUP], 2)
    single = [row for row in rows if isinstance(row.text, str)]
    yield from pairwise(single)


def _changed(one: Text, other: Text) -> tuple[Rationale, Rationale]:
    """The words of each of two texts that the other one lacks."""
    marks: tuple[list[Span], list[Span]] = ([], [])
    for segment, (first, second) in enumerate(zip(segments(one), segments(other), strict=True)):
        spans = [_words(text) for text in (first, second)]
        read = [
            [text[a:b].casefold() for a, b in text_spans]
            for text, text_spans in zip((first, second), spans, strict=True)
        ]
        matcher = SequenceMatcher(None, read[0], read[1], autojunk=False)
        for tag, start, end, again, until in matcher.get_opcodes():
            if tag != "equal":
                marks[0].extend(Span(a, b, segment) for a, b in spans[0][start:end])
                marks[1].extend(Span(a, b, segment) for a, b in spans[1][again:until])
    return tuple(marks[0]), tuple(marks[1])


@lru_cache(maxsize=1024)
def _words(text: str) -> tuple[tuple[int, int], ...]:
    # Each text of a group is compared with all others.
    return tuple(word_spans(text))
