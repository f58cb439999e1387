"""Average relative gain against the formula written out, and an interval over two sides."""

import math

import numpy as np
import pytest

from raison.numerics.statistics.bootstrap import mean_interval
from raison.numerics.statistics.crossed import crossed_interval
from raison.numerics.statistics.gains import average_relative_gain, relative_gains


def literal(values: list[list[float]], references: list[list[float]], higher: bool) -> float:
    """Mean over tasks of (value_b - value_a) / |value_a|, each the mean over seeds; the sign for lower-is-better."""
    total = 0.0
    for b, a in zip(values, references, strict=True):
        value_b, value_a = sum(b) / len(b), sum(a) / len(a)
        gain = (value_b - value_a) / abs(value_a)
        total += gain if higher else -gain
    return total / len(values)


@pytest.mark.parametrize("higher", [True, False])
def test_is_the_formula(higher: bool) -> None:
    rng = np.random.default_rng(0)
    values, references = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)) - 2
    found = average_relative_gain(values, references, higher)
    assert found.mean == pytest.approx(literal(values.tolist(), references.tolist(), higher), rel=1e-12)
    assert found.count == 12
    assert found.low < found.mean < found.high


def test_half_as_much_again_is_a_gain_of_a_half_and_a_loss_where_lower_is_better() -> None:
    one, more = np.array([[0.2, 0.2]]), np.array([[0.3, 0.3]])
    assert average_relative_gain(more, one, True).mean == pytest.approx(0.5)
    assert average_relative_gain(more, one, False).mean == pytest.approx(-0.5)
    # A negative reference is improved by a rise.
    assert average_relative_gain(-one, -more, True).mean == pytest.approx(1 / 3)


def test_missing_seeds_and_tasks_without_a_reference_are_left_out() -> None:
    values = np.array([[1.5, math.nan, 2.5], [7.0, 7.0, 7.0], [1.0, 1.0, math.nan]])
    references = np.array([[1.0, 9.0, 1.0], [0.0, 0.0, 0.0], [math.nan, math.nan, 1.0]])
    gains = relative_gains(values, references, True)
    np.testing.assert_allclose(gains, [[0.5, math.nan, 1.5], [math.nan] * 3, [math.nan] * 3])
    assert average_relative_gain(values, references, True).count == 2


def test_one_pair_has_no_interval_and_none_no_value() -> None:
    one = average_relative_gain(np.array([[3.0]]), np.array([[2.0]]), True)
    assert (one.mean, one.count) == (0.5, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    of_three = average_relative_gain(np.array([[0.9, math.nan, math.nan]]), np.array([[0.8, 0.8, 0.8]]), True)
    assert (of_three.count, math.isnan(of_three.low)) == (1, True)
    none = average_relative_gain(np.array([[math.nan]]), np.array([[2.0]]), True)
    assert none.count == 0
    assert math.isnan(none.mean)


def literal_crossed(table: np.ndarray, draws: int) -> tuple[float, float]:
    rng = np.random.default_rng(5)
    means = []
    for _ in range(draws):
        rows = rng.choice(len(table), len(table))
        columns = rng.choice(table.shape[1], table.shape[1])
        cells = [table[row, column] for row in rows for column in columns]
        known = [cell for cell in cells if not math.isnan(cell)]
        if known:
            means.append(sum(known) / len(known))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def test_crossed_interval_agrees_with_drawing_cell_by_cell() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(8, 9)) + rng.normal(size=(8, 1))
    table[1, 2] = math.nan
    mean, low, high = crossed_interval(table)
    assert mean == pytest.approx(np.nanmean(table))
    expected = literal_crossed(table, 4000)
    assert (low, high) == pytest.approx(expected, abs=0.08 * (high - low))


def test_crossed_interval_is_wide_where_every_group_moves_with_its_seed() -> None:
    # Three values thirty times each: as good as three values, not as ninety.
    table = np.repeat([[0.0], [1.0], [2.0]], 30, axis=1)
    assert crossed_interval(table) == pytest.approx(mean_interval([0.0, 1.0, 2.0]))
    assert crossed_interval(table.T) == pytest.approx(mean_interval([0.0, 1.0, 2.0]))


def test_crossed_interval_of_one_cell_and_of_nothing() -> None:
    mean, low, _ = crossed_interval(np.array([[2.0]]))
    assert mean == 2.0
    assert math.isnan(low)
    assert all(map(math.isnan, crossed_interval(np.array([[math.nan, math.nan]]))))


def test_seeds_of_a_task_are_not_tasks() -> None:
    """Equal gains of a task's seeds say nothing about other tasks."""
    values = np.array([[1.1] * 5, [1.9] * 5])
    found = average_relative_gain(values, np.ones((2, 5)), True)
    assert (found.mean, found.low, found.high) == pytest.approx(mean_interval([0.1, 0.9]))
