"""The agreement of two explanations of one text, or of a text and its edit, in words and a number."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from raison.core.results.explanation import Explanation
from raison.numerics.measures.agreement import spearman
from raison.report.style import phrases
from raison.report.style.markup import minus
from raison.text.beginning import common_length

FEW = 3
"""Minimum number of common units for a rank correlation of two explanations."""
MOST = 25
"""Maximum number of explanations of one text that are compared pairwise on a page."""


def agreements(explanations: Sequence[phrases.AnyExplanation]) -> dict[str, str]:
    """The agreement of every two explanations of one text, by their positions counted from 0, such as "0 2"."""
    alike: dict[str, list[int]] = {}
    for place, e in enumerate(explanations):
        alike.setdefault(repr(e.text if isinstance(e, Explanation) else e.prompt), []).append(place)
    pairs = (pair for places in alike.values() for pair in combinations(places[:MOST], 2))
    explained = ((pair, [_whole(explanations[place]) for place in pair]) for pair in pairs)
    return {f"{first} {second}": agreement(*pair) for (first, second), pair in explained}


def agreement(first: Explanation, second: Explanation) -> str:
    """The agreement of two explanations on the units that both texts have, in words and a number."""
    common = _common(first, second)
    if len(common) < FEW:
        return f"Agreement: not measured, fewer than {FEW} common {first.unit}s"
    ours, theirs = (np.array(scores) for scores in zip(*common, strict=True))
    sizes = not (first.signed and second.signed)
    value = spearman(*(np.abs(scores) if sizes else scores for scores in (ours, theirs)))
    about = "sizes of the scores" if sizes else "scores"
    correlation = minus(phrases.signed(value, 2))
    return f"Agreement: rank correlation of the {about} {correlation}, over {phrases.count(len(common), first.unit)}"


def _whole(e: phrases.AnyExplanation) -> Explanation:
    """An explanation, or that of the whole output."""
    return e if isinstance(e, Explanation) else e.whole()


def _common(first: Explanation, second: Explanation) -> list[tuple[float, float]]:
    """Both scores of every unit that occurs in both texts.

    Where the texts begin and end alike, units are paired by position; in between, the first "the" is paired with the
    first "the", and so on.
    """
    ours, theirs = ([(unit.segment, unit.text) for unit in e.units] for e in (first, second))
    begin = common_length(ours, theirs)
    end = common_length(ours[begin:][::-1], theirs[begin:][::-1])
    places: dict[tuple[int, str], list[int]] = {}
    for place in reversed(range(begin, len(theirs) - end)):
        places.setdefault(theirs[place], []).append(place)
    pairs = [(place, place) for place in range(begin)]
    pairs += [(len(ours) - 1 - place, len(theirs) - 1 - place) for place in range(end)]
    for place in range(begin, len(ours) - end):
        if places.get(ours[place]):
            pairs.append((place, places[ours[place]].pop()))
    return [(first.scores[one], second.scores[other]) for one, other in pairs]
