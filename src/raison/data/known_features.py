"""A data set with a known feature: one inserted word decides the label."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from raison.core.errors import InputError, UnknownNameError
from raison.core.inputs.rationale import Span
from raison.core.inputs.unit import segments
from raison.data.dataset import Dataset, Row

Position = Literal["end", "start", "random"] | int
"""The word's position; a number counts the words before it, and a shorter text gets it at its end."""

DEFAULT_WORDS = ("negative", "positive")
_PLACES = ("end", "random", "start")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class _Draw:
    """A row's random choices."""

    label: int
    chance: float
    """In [0, 1); if below the correlation, the row gets the word of its label."""
    place: float
    """In [0, 1): the random position, as a share of the text."""

    @classmethod
    def of(cls, row: Row, seed: int, labels: int) -> "_Draw":
        # A generator seeded with text is the same on every machine and in every version of Python.
        random = Random(f"known_features {seed} {row.number}")
        return cls(random.randrange(labels), random.random(), random.random())


def known_features(
    dataset: Dataset,
    words: Sequence[str] = DEFAULT_WORDS,
    *,
    position: Position = "end",
    correlation: float = 1.0,
    seed: int = 0,
) -> Dataset:
    """The data set with random labels, each indicated by a word that is inserted into the text.

    Every row gets a new random label, uniform and independent of its old one, so the classes are balanced up to chance.
    Then word number `label` is inserted, separated by a space, and is the row's single rationale. With a `correlation`
    below 1, a row gets its word with that probability; otherwise its text stays, and its one annotator has marked
    nothing. In a pair the second text gets the word. The words are the classes. A row's draw depends only on the seed
    and on the row's number, so a limit does not change it. Texts that already contain one of the words are kept as they
    are, as in the thesis: choose words that are rare in the data.

    Raises InputError for rows with answers (the word's label would take their place), for fewer than two words, a word
    that is blank, repeated or not one word, a correlation outside (0, 1] or a negative position; UnknownNameError for
    another position.

    Source: the thesis of the project's papers, sections 2.2.3.1 and 3.1; it appends the word and has correlation 1.
    """
    _check(words, position, correlation)
    if any(row.answers for row in dataset.rows):
        raise InputError(
            f"{dataset.name} contains questions with answers, which have no labels: use a data set with labels."
        )
    draws = (_Draw.of(row, seed, len(words)) for row in dataset.rows)
    rows = tuple(
        _with_word(row, draw, words[draw.label], position)
        if draw.chance < correlation
        else replace(row, label=draw.label, rationales=((),))
        for row, draw in zip(dataset.rows, draws, strict=True)
    )
    options = "" if tuple(words) == DEFAULT_WORDS else f"{'|'.join(words)}, "
    name = f"{dataset.name}+known_features({options}{position}, {float(correlation)}, seed {seed})"
    return replace(dataset, name=name, rows=rows, labels=tuple(words))


def _check(words: Sequence[str], position: Position, correlation: float) -> None:
    if isinstance(words, str) or len(words) < 2:
        raise InputError(f"words needs two or more words, one per class; got {words!r}.")
    for word in words:
        if len(word.split()) != 1 or word != word.strip():
            raise InputError(f"{word!r} is not one word: give words without spaces in them.")
    if len(set(words)) < len(words):
        raise InputError(f"each class needs its own word, but one occurs twice in {', '.join(words)}.")
    if not 0 < correlation <= 1:
        raise InputError(
            f"the correlation is {correlation}: give the share of rows that get the word of their label, in (0, 1]."
        )
    if isinstance(position, str) and position not in _PLACES:
        raise UnknownNameError("position", position, _PLACES)
    if isinstance(position, int) and position < 0:
        raise InputError(f"the position {position} is negative: count words from the start, or give 'end'.")


def _with_word(row: Row, draw: _Draw, word: str, position: Position) -> Row:
    *before, last = segments(row.text)
    changed, start = _inserted(last, word, position, draw.place)
    span = Span(start, start + len(word), len(before))
    text = (before[0], changed) if before else changed
    return replace(row, text=text, label=draw.label, rationales=((span,),), units=())


def _inserted(text: str, word: str, position: Position, place: float) -> tuple[str, int]:
    """The text with the word in it, and the character where it starts. `place` in [0, 1) is the random position."""
    starts = [match.start() for match in _WORD.finditer(text)]
    ahead = {"start": 0, "end": len(starts), "random": int(place * (len(starts) + 1))}.get(str(position))
    if ahead is None:
        ahead = int(position)
    if ahead >= len(starts):
        # Texts that end with a space, as SST-2's do, need no other.
        base = text if not text or text[-1].isspace() else text + " "
        return base + word, len(base)
    start = starts[ahead]
    return f"{text[:start]}{word} {text[start:]}", start
