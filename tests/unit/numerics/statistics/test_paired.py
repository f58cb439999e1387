"""Differences of two methods on the same texts, against scipy and against literal loops."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.stats import sem, ttest_1samp

from raison.core.errors import InputError, UnknownNameError
from raison.numerics.statistics.bounded import Bounds
from raison.numerics.statistics.paired import EXACT_TEXTS, FEW, TOLERANCE, Difference, against, difference
from raison.numerics.statistics.successes import share_interval
from raison.runs.judging import finding_of


def literal_pool(rows: np.ndarray, pool: str) -> float:
    """The definitions, on the rows of one method."""
    if pool == "mean":
        return sum(row[0] for row in rows) / len(rows)
    top, bottom = (sum(row[part] for row in rows) / len(rows) for part in (0, 1))
    if pool == "ratio":
        return top / bottom
    return 2 * top * bottom / (top + bottom) if top + bottom else 0.0


def literal_p(first: np.ndarray, second: np.ndarray, pool: str) -> float:
    """Every way to swap, one after the other."""
    observed = abs(literal_pool(first, pool) - literal_pool(second, pool))
    hits = 0
    for swaps in itertools.product([False, True], repeat=len(first)):
        left = [b if swap else a for a, b, swap in zip(first, second, swaps, strict=True)]
        right = [a if swap else b for a, b, swap in zip(first, second, swaps, strict=True)]
        hits += abs(literal_pool(left, pool) - literal_pool(right, pool)) >= observed - 1e-9
    return hits / 2 ** len(first)


def scores(texts: int, parts: int = 1, gain: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    level = rng.random((texts, parts))
    return level + gain + 0.2 * rng.random((texts, parts)), level + 0.2 * rng.random((texts, parts))


@pytest.mark.parametrize("texts", [2, 5, 9, EXACT_TEXTS])
@pytest.mark.parametrize("gain", [0.0, 0.05])
def test_few_texts_agree_with_scipy(texts: int, gain: float) -> None:
    first, second = scores(texts, gain=gain, seed=texts)
    reference = stats.permutation_test(
        (first[:, 0], second[:, 0]),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    found = difference(first, second)
    assert found.mean == pytest.approx(reference.statistic, abs=1e-9)
    assert found.p == pytest.approx(reference.pvalue, abs=1e-9)


@pytest.mark.parametrize("pool", ["mean", "ratio", "f1"])
@pytest.mark.parametrize("seed", range(4))
def test_few_texts_agree_with_a_loop(pool: str, seed: int) -> None:
    first, second = scores(7, parts=2, gain=0.1, seed=seed)
    found = difference(first, second, pool)
    assert found.mean == pytest.approx(literal_pool(first, pool) - literal_pool(second, pool), abs=1e-9)
    assert found.p == pytest.approx(literal_p(first, second, pool), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_ties_of_decimals_are_counted_as_in_whole_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = rng.integers(0, 4, size=(2, 10, 1))
    exact = literal_p(whole[0], whole[1], "mean")
    # Tenths have no exact floats: sums in another order differ in the last digits.
    assert difference(whole[0] / 10, whole[1] / 10).p == exact
    assert difference(whole[0] / 10 + 1000, whole[1] / 10 + 1000).p == exact


@pytest.mark.parametrize("pool", ["mean", "ratio", "f1"])
def test_random_swaps_come_near_all_swaps(pool: str) -> None:
    first, second = scores(EXACT_TEXTS + 1, parts=2, gain=0.03, seed=3)
    exact = literal_p(first, second, pool)
    assert 0.02 < exact < 0.98
    # Four standard errors of 10,000 draws.
    assert difference(first, second, pool).p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 10_000))


def test_p_is_never_zero_and_is_small_for_a_plain_gain() -> None:
    first, second = scores(200, gain=1.0)
    assert difference(first, second).p == 1 / 10_001


def test_p_is_uniform_where_there_is_no_difference() -> None:
    found = [difference(*scores(30, seed=seed)).p for seed in range(120)]
    assert stats.kstest(found, "uniform").pvalue > 0.01


@pytest.mark.parametrize("pool", ["mean", "ratio", "f1"])
def test_the_interval_agrees_with_a_loop(pool: str) -> None:
    first, second = scores(40, parts=2, gain=0.02, seed=8)
    rng = np.random.default_rng(1)
    gaps = []
    for _ in range(4000):
        drawn = rng.integers(40, size=40)
        gaps.append(literal_pool(first[drawn], pool) - literal_pool(second[drawn], pool))
    found = difference(first, second, pool)
    # Two samples of resamples: their percentiles differ by some per cent of the spread.
    np.testing.assert_allclose([found.low, found.high], np.quantile(gaps, [0.025, 0.975]), atol=0.2 * np.std(gaps))
    assert found.low < found.mean < found.high


def test_the_interval_pairs_the_texts() -> None:
    level = np.linspace(0, 100, 50)[:, None]
    found = difference(level + 1, level)
    assert found.mean == pytest.approx(1)
    assert found.high - found.low < 1e-9, "texts of the two methods were drawn apart"


def test_the_error_is_that_of_the_differences() -> None:
    first, second = scores(30)
    gaps = (first - second)[:, 0]
    assert difference(first, second).error == pytest.approx(sem(gaps))
    assert against(first, 0.3).error == pytest.approx(sem(first[:, 0]))


@pytest.mark.parametrize("pool", ["ratio", "f1"])
def test_the_error_of_a_pooled_value_is_that_of_resampled_texts(pool: str) -> None:
    first, second = scores(400, parts=2, gain=0.05)
    rng = np.random.default_rng(1)
    gaps = []
    for _ in range(1000):
        drawn = rng.integers(400, size=400)
        gaps.append(literal_pool(first[drawn], pool) - literal_pool(second[drawn], pool))
    assert difference(first, second, pool).error == pytest.approx(np.std(gaps), rel=0.1)


def test_what_so_many_texts_could_have_shown() -> None:
    """By the tables: a difference of half a standard deviation takes 34 texts."""
    gaps = np.random.default_rng(0).normal(size=34)
    gaps = 0.5 + (gaps - gaps.mean()) / gaps.std(ddof=1)
    found = against(gaps[:, None], 0.0)
    assert found.needed == 34
    assert found.detectable == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("texts", [8, 40])
def test_swapping_the_methods_turns_the_sign(texts: int) -> None:
    first, second = scores(texts, parts=2, gain=0.05)
    there, back = difference(first, second, "ratio"), difference(second, first, "ratio")
    assert (back.mean, back.p) == pytest.approx((-there.mean, there.p), abs=1e-12)
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low), abs=1e-9)


@pytest.mark.parametrize("texts", [2, 6, 13, 60])
@pytest.mark.parametrize("pool", ["mean", "ratio", "f1"])
def test_equal_methods(texts: int, pool: str) -> None:
    first, _ = scores(texts, parts=2)
    found = difference(first, first.copy(), pool)
    assert found.second == 1.0
    assert replace(found, second=1.0) == Difference(0.0, 0.0, 0.0, 1.0, texts, 1.0, 0.0)


@pytest.mark.parametrize("texts", [6, 60])
def test_methods_that_differ_by_rounding_alone(texts: int) -> None:
    first = np.full((texts, 1), 0.1 + 0.2)
    assert first[0, 0] != 0.3
    assert difference(first, np.full((texts, 1), 0.3)).p == 1.0
    # What is well above rounding still decides.
    assert difference(first, np.full((texts, 1), 0.3 - 1e4 * TOLERANCE)).p < 0.05


def test_texts_without_a_score_are_left_out() -> None:
    first, second = scores(20, parts=2, gain=0.1)
    holes = first.copy(), second.copy()
    holes[0][3, 1] = np.nan
    holes[1][[3, 7], 0] = np.nan
    there = np.delete(first, [3, 7], axis=0), np.delete(second, [3, 7], axis=0)
    found = difference(*holes, "f1")
    assert found == difference(*there, "f1")
    assert found.count == 18


def test_one_text_and_none() -> None:
    one = difference(np.array([[0.5]]), np.array([[0.2]]))
    assert (one.mean, one.p, one.count) == (pytest.approx(0.3), 1.0, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    for empty in (np.zeros((0, 1)), np.full((3, 1), np.nan)):
        none = difference(empty, empty)
        assert none.count == 0
        assert all(math.isnan(value) for value in (none.mean, none.low, none.high, none.p))


def test_an_undefined_ratio_has_no_difference() -> None:
    found = difference(np.array([[1.0, 1.0], [1.0, 1.0]]), np.zeros((2, 2)), "ratio")
    assert found.count == 2
    assert all(math.isnan(value) for value in (found.mean, found.low, found.high, found.p))


def test_undefined_swaps_count_as_hits_and_undefined_resamples_do_not_count() -> None:
    # Only the first text has a denominator: 1/1 - 1/2 at first, and undefined where one side has no denominator.
    first, second = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[1.0, 2.0], [0.0, 0.0]])
    found = difference(first, second, "ratio")
    assert (found.mean, found.low, found.high, found.p) == pytest.approx((0.5, 0.5, 0.5, 1.0))
    # With the denominators apart, swapping one text alone empties a side: two of four swaps are undefined, and hit.
    first, second = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0]])
    assert difference(first, second, "ratio").p == 1.0


def test_seeds() -> None:
    first, second = scores(50, gain=0.01)
    assert difference(first, second, seed=4) == difference(first, second, seed=4)
    assert difference(first, second, seed=4).low != difference(first, second, seed=5).low


def test_slices_are_all_filled() -> None:
    # Many texts: several slices, of which the last is shorter.
    first, second = scores(1700, gain=0.002, seed=2)
    found = difference(first, second)
    gaps = (first - second)[:, 0]
    reach = 1.96 * gaps.std() / math.sqrt(len(gaps))
    assert (found.low, found.high) == pytest.approx((gaps.mean() - reach, gaps.mean() + reach), abs=0.1 * reach)
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(gaps.mean()) / gaps.std() * math.sqrt(len(gaps))), abs=0.03)


def test_bad_input() -> None:
    first, second = scores(3)
    with pytest.raises(UnknownNameError, match="Did you mean 'ratio'"):
        difference(first, second, "ration")
    with pytest.raises(InputError, match="finite"):
        difference(first * np.inf, second)


@pytest.mark.parametrize("number", [0.2, 0.5, 0.55])
def test_a_mean_against_a_number_flips_signs(number: float) -> None:
    """Exchanging each text's value with its mirror image beyond the number."""
    values = scores(9, seed=3)[0]
    found = against(values, number)
    gaps = values[:, 0] - number
    flips = np.array([np.mean(gaps * signs) for signs in itertools.product([1.0, -1.0], repeat=9)])
    assert found.mean == pytest.approx(gaps.mean())
    assert found.p == pytest.approx((np.abs(flips) >= abs(gaps.mean()) - 1e-9).mean())


def test_a_ratio_against_a_number_counts_each_text_with_its_share() -> None:
    """A ratio's slopes: the text's first part minus the ratio times its second, over the mean of the second."""
    rng = np.random.default_rng(4)
    values = np.stack([rng.random(10), 1 + rng.random(10)], axis=1)
    ratio = values[:, 0].mean() / values[:, 1].mean()
    shares = (values[:, 0] - ratio * values[:, 1]) / values[:, 1].mean() + ratio - 0.2
    found = against(values, 0.2, "ratio")
    assert found.mean == pytest.approx(ratio - 0.2)
    assert found.p == pytest.approx(against(shares[:, None], 0.0).p)


def literal_studentised(columns: np.ndarray) -> float:
    """The definition for a mean, a row for each resample."""
    reached = columns.mean() / columns.std()
    drawn = np.random.default_rng(11).choice(columns, (20_000, len(columns)))
    mean, spread = drawn.mean(axis=1), drawn.std(axis=1)
    assert spread.min() > 0
    above = np.mean((mean - columns.mean()) / spread >= reached)
    return 2 * min(above, 1 - above)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("shift", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("kind", ["even", "skewed"])
def test_studentised_p_is_the_share_of_resamples_beyond(shift: float, kind: str) -> None:
    rng = np.random.default_rng(8)
    values = shift + (rng.normal(size=14) if kind == "even" else rng.exponential(size=14) - 1)
    assert against(values[:, None], 0.0).second == pytest.approx(literal_studentised(values), abs=0.015)


def test_studentised_p_of_two_rows_is_that_of_their_differences() -> None:
    first, second = scores(12, gain=0.05, seed=6)
    assert difference(first, second).second == pytest.approx(against(first - second, 0.0).second, abs=1e-12)


@pytest.mark.parametrize("pool", ["ratio", "f1"])
def test_studentised_p_knows_pools(pool: str) -> None:
    """Scaling both parts leaves a ratio as it is, and scales an F1: neither changes in standard errors."""
    first, second = scores(12, parts=2, gain=0.1, seed=7)
    found = difference(first, second, pool).second
    assert 0 < found < 1
    assert found == pytest.approx(difference(3 * first, 3 * second, pool).second, abs=2e-3)


@pytest.mark.parametrize(
    ("values", "number", "p"),
    [
        (np.full((20, 1), 2.0), 1.8, 2 * (1 / 1.1) ** 20),
        (np.full((16, 1), 2.0), 0.8, 2 * (1 / 1.6) ** 16),
        (np.full((16, 1), 0.5), 0.9, 2 * (0.9 / 1.3) ** 16),
        (np.full((8, 1), 2.0), 1.0, 2 * (1 / 1.5) ** 8),
        (np.full((8, 1), 2.0), 2.0, 1.0),
    ],
)
def test_of_texts_that_are_all_alike_others_may_not_have_been_seen(values: np.ndarray, number: float, p: float) -> None:
    assert against(values, number).second == pytest.approx(p, abs=1e-12)


def test_twenty_right_answers_do_not_show_nine_of_ten() -> None:
    assert finding_of(against(np.ones((20, 1)), 0.9), "above") == "undecided"
    assert finding_of(against(np.ones((20, 1)), 0.5), "above") == "holds"
    assert finding_of(against(np.zeros((20, 1)), 0.5), "above") == "fails"


@pytest.mark.parametrize(("hits", "count", "share"), [(0, 40, 0.1), (0, 40, 0.08), (18, 600, 0.05), (7, 8, 0.5)])
def test_hits_and_misses_against_a_share_have_the_binomial_test(hits: int, count: int, share: float) -> None:
    """The probability of every number of hits that is no likelier than the observed one."""
    found = against(np.array([1.0] * hits + [0.0] * (count - hits))[:, None], share)
    likely = [math.comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(count + 1)]
    assert found.p == pytest.approx(sum(one for one in likely if one <= likely[hits] * (1 + 1e-9)), rel=1e-6)
    assert found.second == found.p
    assert (found.low + share, found.high + share) == pytest.approx(share_interval(hits, count))


def test_many_hits_without_a_miss_do_not_show_more_than_they_can() -> None:
    """Of 30 texts of which 95 % are right, all are right in one case of five."""
    assert finding_of(against(np.ones((30, 1)), 0.95), "above") == "undecided"
    assert finding_of(against(np.ones((200, 1)), 0.95), "above") == "holds"
    # Other values that are all alike: those that differ may not have been seen.
    assert finding_of(against(np.full((30, 1), 0.97), 0.95), "above") == "undecided"


def test_few_texts_have_students_interval() -> None:
    first, second = scores(5)
    found, expected = difference(first, second), ttest_1samp((first - second)[:, 0], 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("values", [[1.0] * 8, [1.0] * 7 + [0.9], [1, 0.9, 0.8, 0.9, 1, 0.8, 0.9, 0.9]])
def test_known_bounds_decide_what_is_nearly_all_alike(values: list[float]) -> None:
    parts = np.array(values)[:, None]
    assert finding_of(against(parts, 0.5, bounds=Bounds(0.0, 1.0)), "above") == "holds"
    assert finding_of(against(1 - parts, 0.5, bounds=Bounds(0.0, 1.0)), "above") == "fails"
    # An interval that does not decide stays undecided.
    assert finding_of(against(parts, 0.93, bounds=Bounds(0.0, 1.0)), "above") == "undecided"


@pytest.mark.parametrize("count", [FEW - 1, FEW, 50, 3000])
def test_differences_that_are_all_alike_are_tested_however_much_the_texts_vary(count: int) -> None:
    """Other texts, of which none was drawn, may outweigh them: see alike_p."""
    first = np.random.default_rng(1).choice([0, 0.25, 0.5, 0.75, 1], size=(count, 1))
    found = difference(first, first - 0.1)
    assert found.second == pytest.approx(min(1.0, 2 * (1 / 1.1) ** count))
    assert (found.error, found.low) == (0, pytest.approx(found.high))
    assert math.isnan(found.detectable)
    assert math.isnan(found.needed)


def test_many_texts_need_no_second_test() -> None:
    assert math.isnan(difference(*scores(FEW)).second)
    assert not math.isnan(difference(*scores(FEW - 1)).second)


@pytest.mark.parametrize(("value", "count"), [(0.3, 100), (0.7, 100), (0.1, 100), (0.2, 100), (0.7, 30), (1e-9, 40)])
def test_a_difference_that_is_rounding_is_none(value: float, count: int) -> None:
    gap = against(np.full((count, 1), value), value)
    assert (gap.mean, gap.low, gap.high, gap.p) == (0, 0, 0, 1)
    rounded = difference(np.full((count, 1), value * 3), np.full((count, 1), value) * 3)
    assert (rounded.mean, rounded.low, rounded.high) == (0, 0, 0)


@pytest.mark.parametrize("count", [2, 8, 13, 40])
def test_values_around_a_number_are_tested_as_their_distances_from_it(count: int) -> None:
    values = np.random.default_rng(count).normal(0.2, 1.0, (count, 1))
    distances = values - 0.1
    whole = difference(distances, np.zeros_like(distances))
    found = against(values, 0.1)
    assert found.p == whole.p
    assert (found.mean, found.low, found.high) == pytest.approx((whole.mean, whole.low, whole.high))
