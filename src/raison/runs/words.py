"""Words over a data set of explanations: which matter for a class, and which decide far more often than by chance.

A word decides a text if its score is the highest one there, above zero. By chance, that would be any unit of the text:
a word that occurs k times among n units decides with probability k / n. The number of texts that it decides is compared
with that, exactly, and Holm's correction over all words bounds the chance of any false finding. A found word decides
often; whether it should (like "wonderful") or should not (like a reviewer's name) is for people to judge.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from raison.core.errors import InputError, UnknownNameError
from raison.core.results.explanation import Explanation
from raison.numerics.statistics.bootstrap import mean_interval
from raison.numerics.statistics.multiple import holm
from raison.numerics.statistics.successes import at_least

LEAST = 5
"""Minimum number of texts with the word."""
MOST = 20
"""Number of words named for a class."""
FOUND_BELOW = 0.05
"""Maximum corrected p-value of a word that counts as found."""


@dataclass(frozen=True, slots=True)
class WordScore:
    """A word's mean score for a class over the texts that have it, with its interval; `texts` are their numbers."""

    word: str
    target: str
    mean: float
    low: float
    high: float
    texts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decisive:
    """A word that decides `decided` of the texts that have it, where chance would give `expected`.

    `p` is the probability of as many by chance, `corrected` by Holm's method over all words that were tested.
    """

    word: str
    decided: int
    expected: float
    p: float
    corrected: float
    texts: tuple[int, ...]
    """Numbers of the texts whose prediction it decides."""


@dataclass(slots=True)
class _Chances:
    """The statistics of one word: its chance in every text that has it, and the texts that it decides."""

    chances: list[float]
    texts: list[int]


def words_of(
    explanations: Iterable[Explanation], target: str, least: int = LEAST, most: int = MOST, length: int = 1
) -> tuple[WordScore, ...]:
    """The words with the largest mean scores, by their size, for one explained class.

    With a `length` above 1 these are sequences of `length` neighbours, whose scores are summed. The scores of several
    occurrences in a text are added. Words are compared ignoring case. Raises UnknownNameError for a target that is none
    of the explanations' classes.
    """
    _check(least, length)
    scores: dict[str, dict[int, float]] = defaultdict(dict)
    known: set[str] = set()
    for number, e in enumerate(explanations):
        known |= {e.target, *e.classes}
        if e.target == target and e.against is None and all(map(math.isfinite, e.scores)):
            for word, score in _sums(e, length).items():
                scores[word][number] = score
    if known and target not in known:
        raise UnknownNameError("class", target, sorted(known))
    means = {word: sum(by_text.values()) / len(by_text) for word, by_text in scores.items() if len(by_text) >= least}
    largest = sorted(means, key=lambda word: (-abs(means[word]), word))[:most]
    return tuple(_scored(word, target, scores[word]) for word in largest)


def decisive(
    explanations: Iterable[Explanation], least: int = LEAST, level: float = FOUND_BELOW
) -> tuple[Decisive, ...]:
    """The words that decide more texts than by chance, the most significant first; every word in at least `least` texts
    is tested.

    Texts of one unit, texts whose highest score is shared by several units or not above zero, and texts with a NaN
    score are left out, because no word decides them. Words are compared ignoring case. Raises InputError.
    """
    _check(least)
    if not 0 < level < 1:
        raise InputError(f"level is a probability between 0 and 1; got {level}.")
    known = {word: one for word, one in _chances(explanations).items() if len(one.chances) >= least}
    p_values = [at_least(len(one.texts), one.chances) for one in known.values()]
    significant = [
        Decisive(word, len(one.texts), sum(one.chances), p, corrected, tuple(one.texts))
        for (word, one), p, corrected in zip(known.items(), p_values, holm(p_values), strict=True)
        if corrected <= level
    ]
    return tuple(sorted(significant, key=lambda one: (one.corrected, one.p, -one.decided, one.word)))


def _chances(explanations: Iterable[Explanation]) -> Mapping[str, _Chances]:
    known: dict[str, _Chances] = defaultdict(lambda: _Chances([], []))
    for number, e in enumerate(explanations):
        top = deciding(e)
        if top is None:
            continue
        words = [unit.text.casefold() for unit in e.units]
        for word, count in Counter(words).items():
            known[word].chances.append(count / len(words))
        known[words[top]].texts.append(number)
    return known


def deciding(e: Explanation) -> int | None:
    """The unit that decides a text; None if none does."""
    scores = np.array(e.scores)
    if len(scores) < 2 or not np.isfinite(scores).all():
        return None
    highest = scores.max()
    return int(scores.argmax()) if highest > 0 and (scores == highest).sum() == 1 else None


def _sums(e: Explanation, length: int) -> Mapping[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for start in range(len(e.units) - length + 1):
        units = e.units[start : start + length]
        if units[0].segment == units[-1].segment:
            sums[" ".join(unit.text.casefold() for unit in units)] += sum(e.scores[start : start + length])
    return sums


def _scored(word: str, target: str, scores: Mapping[int, float]) -> WordScore:
    return WordScore(word, target, *mean_interval(list(scores.values())), tuple(scores))


def _check(least: int, length: int = 1) -> None:
    if least < 1:
        raise InputError(f"least is a number of texts, at least 1; got {least}.")
    if length < 1:
        raise InputError(f"length is a number of words, at least 1; got {length}.")
