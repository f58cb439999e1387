"""Agreement of two score vectors, against scipy, scikit-learn and a literal top-k."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics.pairwise import cosine_similarity

from raison.core.errors import InputError
from raison.numerics.measures.agreement import cosine, kendall, spearman, top_k_overlap
from tests.explained import of_words

WORDS = "a calm sea and a long road home again soon then".split()
EXPLANATION = of_words(" ".join(WORDS))


def draw(seed: int, tied: bool) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors that are somewhat alike, one score per word."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=len(WORDS))
    b = a + rng.normal(size=len(WORDS))
    return (np.round(a), np.round(b)) if tied else (a, b)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_correlations_agree_with_scipy(seed: int, tied: bool) -> None:
    a, b = draw(seed, tied)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-9)
    assert kendall(a, b) == pytest.approx(literal_tau(a, b), abs=1e-9)
    assert cosine(a, b) == pytest.approx(cosine_similarity(a[None], b[None])[0, 0], abs=1e-9)


def literal_tau(a: np.ndarray, b: np.ndarray) -> float:
    """Tau-b over all pairs of units."""
    first = np.sign(a[:, None] - a[None, :])
    second = np.sign(b[:, None] - b[None, :])
    return float((first * second).sum() / math.sqrt((first**2).sum() * (second**2).sum()))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("k", [1, 3, 11, 50, 0.01, 0.2, 0.5, 1.0])
def test_top_k_is_that_of_the_explanation(k: int | float, tied: bool) -> None:
    for seed in range(5):
        a, b = draw(seed, tied)
        count = min(len(a), k) if isinstance(k, int) else max(1, math.floor(k * len(a) + 0.5))
        tops = [set(replace(EXPLANATION, scores=tuple(side.tolist())).order()[:count]) for side in (a, b)]
        assert top_k_overlap(a, b, k) == pytest.approx(len(tops[0] & tops[1]) / count)


def test_top_k_worked_examples() -> None:
    a, b = np.array([5.0, 4.0, 3.0, 2.0, 1.0]), np.array([4.0, 1.0, 5.0, 2.0, 3.0])
    assert top_k_overlap(a, b, 2) == 0.5
    assert top_k_overlap(a, b, 1) == 0.0
    assert top_k_overlap(a, b, 1.0) == 1.0
    # Half of five units is 2.5, rounded up to three: {0, 1, 2} and {2, 0, 4}.
    assert top_k_overlap(a, b, 0.5) == pytest.approx(2 / 3)
    # Equal scores stay in the order of the text.
    assert top_k_overlap(np.zeros(5), a, 2) == 1.0
    assert top_k_overlap(np.zeros(5), -a, 2) == 0.0


@pytest.mark.parametrize("measure", [spearman, kendall, top_k_overlap, cosine])
def test_same_scores_agree_whatever_their_scale(measure: Callable[..., float]) -> None:
    a, _ = draw(1, tied=False)
    for scale in (1.0, 7.5, 1e-200, 1e200):
        assert measure(a, a * scale) == pytest.approx(1.0, abs=1e-9)
        assert measure(a * scale, a) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("measure", [spearman, kendall, cosine])
def test_opposite_scores(measure: object) -> None:
    a, _ = draw(1, tied=False)
    assert measure(a, -a) == pytest.approx(-1.0, abs=1e-9)


@pytest.mark.parametrize("measure", [spearman, kendall, top_k_overlap, cosine])
def test_is_symmetric_and_in_range(measure: Callable[..., float]) -> None:
    for seed in range(20):
        a, b = draw(seed, tied=seed % 2 == 0)
        found = measure(a, b)
        assert -1 <= found <= 1
        assert found == pytest.approx(measure(b, a), abs=1e-12)


@pytest.mark.parametrize("measure", [spearman, kendall])
def test_no_order_to_compare(measure: object) -> None:
    for a, b in ((np.ones(4), np.arange(4.0)), (np.arange(4.0), np.ones(4)), (np.ones(1),) * 2, (np.ones(0),) * 2):
        assert math.isnan(measure(a, b))


def test_no_direction_to_compare() -> None:
    for a, b in ((np.zeros(4), np.ones(4)), (np.ones(4), np.zeros(4)), (np.ones(0), np.ones(0))):
        assert math.isnan(cosine(a, b))
    assert math.isnan(top_k_overlap(np.ones(0), np.ones(0)))


@pytest.mark.parametrize("measure", [spearman, kendall, top_k_overlap, cosine])
def test_missing_scores(measure: Callable[..., float]) -> None:
    a, b = draw(0, tied=False)
    b[2] = np.nan
    assert math.isnan(measure(a, b))
    assert math.isnan(measure(b, a))


@pytest.mark.parametrize("k", [0, -1, 0.0, 1.5])
def test_k_that_cannot_be(k: int | float) -> None:
    with pytest.raises(InputError, match=f"got {k}"):
        top_k_overlap(np.ones(3), np.ones(3), k)


@pytest.mark.parametrize("units", range(2, 40))
def test_equal_orders_correlate_by_exactly_one(units: int) -> None:
    """Rounding once made the correlation of some numbers of units 1 and that of others just less."""
    scores = np.random.default_rng(units).normal(size=units)
    assert spearman(scores, scores) == 1.0
    assert spearman(scores, -scores) == -1.0
