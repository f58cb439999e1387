"""The similarity of two explanations of the same text: measures of two score vectors over the same units.

NaN means that there is nothing to compare; such texts are left out of means.
"""

import math

import numpy as np
from jaxtyping import Float

from raison.core.errors import InputError
from raison.numerics.measures.ranking import PROFILES, check_share

Units = Float[np.ndarray, " units"]


DECIMALS = 6
"""Shares of the largest magnitude that agree in so many decimals are equal but for rounding."""


def relative(scores: Units, decimals: int = DECIMALS) -> Units:
    """Scores as shares of the largest magnitude, rounded, so that ties depend neither on the scale nor on rounding."""
    largest = np.abs(scores).max(initial=0.0)
    return np.round(scores / largest, decimals) if largest > 0 else scores


ROUNDING = 1e-12
"""What a cosine of parallel vectors may lack of 1."""


def spearman(a: Units, b: Units) -> float:
    """Spearman's rank correlation, -1..1: Pearson's correlation of the ranks; ties share their mean rank.

    NaN if a side has a single value (one unit or none, equal scores) or a NaN: there is no order to compare.
    """
    return cosine(centred_ranks(a), centred_ranks(b))


def centred_ranks(scores: Units) -> Units:
    """The ranks less their mean, whose cosine is `spearman`; all zero, or NaN, where there is no order."""
    # Imported here: scipy.stats takes a fifth of a second to import, and loading a model imports this module.
    from scipy.stats import rankdata

    return rankdata(scores) - (len(scores) + 1) / 2


def kendall(a: Units, b: Units) -> float:
    """Kendall's tau-b, -1..1: pairs of units in the same order minus pairs in reverse, corrected for ties.

    NaN under the same conditions as `spearman`.
    """
    if not (_ordered(a) and _ordered(b)):
        return math.nan
    from scipy.stats import kendalltau

    return float(kendalltau(a, b, variant="b").statistic)


def top_k_overlap(a: Units, b: Units, k: int | float = 0.2) -> float:
    """|top_k(a) & top_k(b)| / k, 0..1, where top_k are the k units of the highest scores.

    `k` is a number of units (an int; all of them if there are fewer) or a share of them (a float in 0..1, rounded
    half up, at least one unit): 1 is one unit, 1.0 is all. Ties keep the order of the text, as in `Explanation.order`;
    two constant vectors therefore agree. NaN without units or with a NaN score. Raises InputError on another `k`.
    """
    if isinstance(k, float):
        check_share(k)
    elif k < 1:
        raise InputError(f"k is a number of units, at least 1, or a share of them such as 0.2; got {k}.")
    if not len(a) or np.isnan(a).any() or np.isnan(b).any():
        return math.nan
    count = PROFILES["printed"].count(len(a), k) if isinstance(k, float) else min(len(a), k)
    return len(_top(a, count) & _top(b, count)) / count


def cosine(a: Units, b: Units) -> float:
    """Cosine of the angle between the scores, -1..1. NaN if a side is all zero or has a NaN."""
    if not (np.any(a) and np.any(b)) or np.isnan(a).any() or np.isnan(b).any():
        return math.nan
    # Scaled first: squares of very small or large scores would leave the range of floats.
    first = a.astype(np.float64) / np.abs(a).max()
    second = b.astype(np.float64) / np.abs(b).max()
    value = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    # Rounding could exceed the range, or miss its end: then equal explanations would differ.
    return float(np.sign(value) if 1 - abs(value) <= ROUNDING else value)


def _ordered(scores: Units) -> bool:
    """Whether the scores have an order: two different values and no NaN."""
    # With a NaN among the scores both ends are NaN, and no comparison with it holds.
    return len(scores) > 1 and bool(scores.min() < scores.max())


def _top(scores: Units, count: int) -> set[int]:
    """Places of the highest scores; the stable sort keeps the order of the text among ties."""
    return set(np.argsort(-scores, kind="stable")[:count].tolist())
