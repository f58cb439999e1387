"""Important token share, entropy and Gini index against their formulas, term by term."""

import math

import numpy as np
import pytest
from scipy.stats import entropy as scipy_entropy

from raison.core.errors import InputError
from raison.metrics import CATALOGUE
from tests.reference.test_known_feature_metrics import Marked, explain

NAMES = ("important_token_share", "entropy", "gini")


def measure(spec: str, *scores: float) -> float:
    found = CATALOGUE.create(spec).measure(explain(scores), Marked(()))
    assert isinstance(found, float)
    return found


def random_scores() -> list[list[float]]:
    """Texts of 2 to 30 units: signed, tied, and with zeros among them."""
    rng = np.random.default_rng(0)
    cases = []
    for number in range(60):
        units = int(rng.integers(2, 31))
        scores = rng.normal(size=units) if number % 2 else rng.integers(-2, 3, size=units) / 2
        scores[0], scores[1] = 1.5, -0.25
        cases.append(scores.tolist())
    return cases


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("thresholds", [None, (0.0,), (0.5, 0.95)])
def test_important_token_share(thresholds: tuple[float, ...] | None, absolute: bool) -> None:
    settings = f"absolute={absolute}" + (f", thresholds={thresholds}" if thresholds else "")
    for scores in random_scores():
        used = [abs(score) for score in scores] if absolute else scores
        low, high = min(used), max(used)
        shares = []
        for z in thresholds or (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
            important = [score for score in used if (score - low) / (high - low) > z]
            shares.append(len(important) / len(used))
        expected = sum(shares) / len(shares)
        assert measure(f"important_token_share({settings})", *scores) == pytest.approx(expected, abs=1e-9)


def test_important_token_share_by_hand() -> None:
    # Normalised 0, 0.55, 1: above z up to 0.5 are two units, then one.
    assert measure("important_token_share", -1.0, 0.1, 1.0) == pytest.approx((5 * 2 / 3 + 4 * 1 / 3) / 9)
    # Magnitudes 1, 0.1, 1 normalise to 1, 0, 1.
    assert measure("important_token_share(absolute=True)", -1.0, 0.1, 1.0) == pytest.approx(2 / 3)


def test_equal_scores_cannot_be_normalised() -> None:
    for scores in ([0.3], [0.0, 0.0], [0.2, 0.2, 0.2]):
        assert math.isnan(measure("important_token_share", *scores))
    assert math.isnan(measure("important_token_share(absolute=True)", -0.5, 0.5))


def test_entropy() -> None:
    for scores in random_scores():
        total = sum(abs(score) for score in scores)
        terms = [abs(score) / total * math.log(abs(score) / total) for score in scores if score]
        expected = -sum(terms)
        assert measure("entropy(normalised=False)", *scores) == pytest.approx(expected, abs=1e-9)
        assert measure("entropy", *scores) == pytest.approx(expected / math.log(len(scores)), abs=1e-9)
        assert measure("entropy", *scores) == pytest.approx(scipy_entropy(np.abs(scores), base=len(scores)), abs=1e-9)


def test_gini() -> None:
    for scores in random_scores():
        a = [abs(score) for score in scores]
        expected = sum(abs(x - y) for x in a for y in a) / (2 * len(a) * sum(a))
        assert measure("gini", *scores) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("units", [2, 3, 10])
def test_ends_of_the_ranges(units: int) -> None:
    one = [0.0] * (units - 1) + [-0.7]
    equal = [0.7 * (-1) ** i for i in range(units)]
    assert measure("entropy", *one) == pytest.approx(0, abs=1e-12)
    assert measure("entropy", *equal) == pytest.approx(1)
    assert measure("entropy(normalised=False)", *equal) == pytest.approx(math.log(units))
    assert measure("gini", *one) == pytest.approx((units - 1) / units)
    assert measure("gini", *equal) == pytest.approx(0, abs=1e-12)
    share = "important_token_share(absolute=True)"
    assert measure(share, *one) == pytest.approx(1 / units)
    assert measure(share, *[0.7] * (units - 1), 0.0) == pytest.approx((units - 1) / units)


def test_one_unit_has_everything() -> None:
    assert measure("entropy", 0.4) == measure("entropy(normalised=False)", -0.4) == 0
    assert measure("gini", 0.4) == 0


@pytest.mark.parametrize("spec", ["entropy", "entropy(normalised=False)", "gini"])
def test_all_zero_scores_have_no_shares(spec: str) -> None:
    assert math.isnan(measure(spec, 0.0, 0.0))
    assert math.isnan(measure(spec, 0.0))


@pytest.mark.parametrize("name", NAMES)
def test_neither_scale_nor_order_matters_and_neither_end_is_better(name: str) -> None:
    metric = CATALOGUE.get(name)
    assert (metric.higher_is_better, metric.ordered, metric.needs) == (None, False, frozenset())
    for scores in random_scores():
        value = measure(name, *scores)
        assert measure(name, *(8.0 * score for score in scores)) == pytest.approx(value, abs=1e-9)
        assert measure(name, *scores[::-1]) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("thresholds", ["()", "(1.0,)", "(-0.1, 0.5)"])
def test_thresholds_are_checked(thresholds: str) -> None:
    with pytest.raises(InputError, match="thresholds of important_token_share cannot be .*each at least 0 and below 1"):
        CATALOGUE.create(f"important_token_share(thresholds={thresholds})")
