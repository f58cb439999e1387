"""Mean ranks of methods over metrics."""

import math

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.numerics.statistics.ranks import mean_ranks


def literal(values: np.ndarray, higher: list[bool]) -> list[float]:
    """A method's rank is 1 + the number of better methods + half the number of its equals."""
    means = []
    for method in range(len(values)):
        ranks = []
        for metric, up in enumerate(higher):
            column = values[:, metric]
            mine = column[method]
            if not math.isnan(mine):
                better = sum((other > mine) if up else (other < mine) for other in column)
                ranks.append(1 + better + (sum(other == mine for other in column) - 1) / 2)
        means.append(sum(ranks) / len(ranks) if ranks else math.nan)
    return means


def test_a_worked_example() -> None:
    values = np.array([[0.9, 10.0], [0.5, 20.0], [0.5, 5.0]])
    np.testing.assert_allclose(mean_ranks(values, [True, False]), [1.5, 2.75, 1.75])


@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_counting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, size=(6, 5)).astype(float)
    values[rng.random((6, 5)) < 0.3] = np.nan
    values[0] = np.nan
    higher = (rng.random(5) < 0.5).tolist()
    found = mean_ranks(values, higher)
    assert math.isnan(found[0])
    np.testing.assert_allclose(found, literal(values, higher))


def test_a_missing_cell_is_left_out() -> None:
    values = np.array([[3.0, np.nan], [2.0, 1.0], [1.0, 2.0]])
    np.testing.assert_allclose(mean_ranks(values, [True, True]), [1.0, 2.0, 2.0])


def test_no_metric_gives_no_rank() -> None:
    assert np.isnan(mean_ranks(np.zeros((2, 0)), [])).all()


def test_one_direction_per_metric() -> None:
    with pytest.raises(InputError, match="2 metrics, 1 directions"):
        mean_ranks(np.zeros((3, 2)), [True])
