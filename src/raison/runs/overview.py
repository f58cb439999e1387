"""Overview of a data set of explanations: for each class its words, sequences and positions, and the deciding words."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.results.explanation import Explanation
from raison.numerics.statistics.bootstrap import mean_interval
from raison.runs.words import FOUND_BELOW, LEAST, WordScore, decisive, words_of

CLASSES = 12
"""Maximum number of classes that are reported, the most frequent ones."""
SEQUENCES = 10
"""Number of sequences named for a class."""
FOUND = 50
"""Number of deciding words that are named."""
PARTS = 5
"""Number of equal parts into which a text is cut, to report where its scores are."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A word's mean score over a number of texts, with a 95 % interval."""

    word: str
    mean: float
    low: float
    high: float
    texts: int


@dataclass(frozen=True, slots=True)
class PositionShare:
    """The mean share of the scores' magnitudes in one part of the texts, with a 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class OfClass:
    """The important words and positions for one explained class. `parts` is empty if too few texts have at least one
    unit per part."""

    target: str
    texts: int
    words: tuple[Mean, ...]
    sequences: tuple[Mean, ...]
    parts: tuple[PositionShare, ...]


@dataclass(frozen=True, slots=True)
class Shortcut:
    """A word that decides more texts than by chance; see raison.runs.words.Decisive."""

    word: str
    decided: int
    expected: float
    p: float
    corrected: float


@dataclass(frozen=True, slots=True)
class Overview:
    """`found` words decide more often than by chance at this level; `shortcuts` are the most significant of them."""

    texts: int
    targets: int
    classes: tuple[OfClass, ...]
    level: float
    found: int
    shortcuts: tuple[Shortcut, ...]


def overview(explanations: Sequence[Explanation]) -> Overview:
    """The overview of all given explanations."""
    counts = Counter(e.target for e in explanations)
    decisive_words = decisive(explanations)
    return Overview(
        texts=len(explanations),
        targets=len(counts),
        classes=tuple(_of_class(explanations, target, count) for target, count in counts.most_common(CLASSES)),
        level=FOUND_BELOW,
        found=len(decisive_words),
        shortcuts=tuple(Shortcut(w.word, w.decided, w.expected, w.p, w.corrected) for w in decisive_words[:FOUND]),
    )


def parts_of(explanations: Sequence[Explanation], target: str) -> tuple[PositionShare, ...]:
    """Where the scores are: the average share of each fifth of a text in the sum of their magnitudes.

    Unit i of n belongs to part floor(5 i / n). Texts with fewer units than parts, of two strings, or whose scores are
    all zero are left out; the result is empty for fewer than five texts.
    """
    shares = [share for e in explanations if e.target == target and (share := _shares(e)) is not None]
    if len(shares) < LEAST:
        return ()
    return tuple(PositionShare(*mean_interval(list(column))) for column in zip(*shares, strict=True))


def _shares(e: Explanation) -> list[float] | None:
    sizes = np.abs(e.scores)
    if len(sizes) < PARTS or not isinstance(e.text, str) or not math.isfinite(sizes.sum()) or not sizes.any():
        return None
    parts = np.arange(len(sizes)) * PARTS // len(sizes)
    return [float(share) for share in np.bincount(parts, sizes) / sizes.sum()]


def _of_class(explanations: Sequence[Explanation], target: str, count: int) -> OfClass:
    words = words_of(explanations, target)
    sequences = words_of(explanations, target, most=SEQUENCES, length=2)
    parts = parts_of(explanations, target)
    return OfClass(target, count, tuple(map(_mean, words)), tuple(map(_mean, sequences)), parts)


def _mean(word: WordScore) -> Mean:
    return Mean(word.word, word.mean, word.low, word.high, len(word.texts))
