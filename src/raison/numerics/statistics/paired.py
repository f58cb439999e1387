"""Paired comparison: the difference of two methods on the same texts, its interval and its p-value."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from raison.core.errors import InputError
from raison.numerics.statistics.bootstrap import POOLS, Pool, pool_of, pooled_interval
from raison.numerics.statistics.bounded import Bounds, betting_p, share_p
from raison.numerics.statistics.power import detectable, needed
from raison.numerics.statistics.resampling import RESAMPLES, Draws, Swaps, draws, grouped
from raison.numerics.statistics.student import FEWEST, student_interval
from raison.numerics.statistics.studentised import alike_p, studentised_p
from raison.numerics.statistics.successes import is_hit_or_miss, share_interval

COVERAGE = 0.95
"""Of a confidence interval."""
EXACT_TEXTS = 12
"""Maximum number of texts for which all 2^n swaps are tried."""
TOLERANCE = 1e-10
"""Differences that agree to this share of the pooled values tie; smaller ones are rounding errors."""
FEW = 30
"""Below this number of texts percentile intervals are too narrow (benchmarks/claim_rules.py), and the second test is
used. It is used with any number of texts whose differences are all alike, and of hits and misses.
"""

SampleMeans = Float[np.ndarray, "2 samples parts"]
Gaps = Float[np.ndarray, " samples"]
Pairs = Float[np.ndarray, "2 texts parts"]
Sums = Float[np.ndarray, "groups columns"]
"""Per text or group of texts: the first method's parts, the second's, and the number of texts."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Pooled value of the first method minus that of the second, or minus a number, on the same `count` texts.

    `low` and `high` are its 95 % interval; `p` is two-sided, for "the two methods could be exchanged on every text", or
    "the values lie evenly around the number" (see `against`). `second` is the p-value of a second test, NaN where `FEW`
    texts or more need none: the studentised bootstrap, or `p` where it is exact (see `difference`). `error` is the
    standard error, with `freedom` degrees of freedom: count - 1 unless it is said.
    """

    mean: float
    low: float
    high: float
    p: float
    count: int
    second: float = math.nan
    error: float = math.nan
    freedom: float = math.nan

    @property
    def confirmed(self) -> float:
        """The larger p-value if two tests were made; NaN if none was."""
        return float(np.fmax(self.p, self.second))

    @property
    def detectable(self) -> float:
        """The smallest true difference that `count` texts find with 80 % power; NaN if the spread is unknown."""
        return detectable(self.error, self.count - 1 if math.isnan(self.freedom) else self.freedom)

    @property
    def needed(self) -> float:
        """The approximate number of texts that would find this difference with 80 % power; infinity above a million."""
        return needed(self.mean, self.error, self.count)


def difference(
    first: Float[np.ndarray, "texts parts"],
    second: Float[np.ndarray, "texts parts"],
    pool: str = "mean",
    seed: int = 0,
    shift: float = 0.0,
) -> Difference:
    """Compare two methods text by text; row i of both is text i, in a metric's own unit. `shift` moves the second.

    The interval is a percentile bootstrap (Efron 1979): texts are resampled with both of their rows; of fewer than
    `FEWEST` texts it is Student's. The p-value is a paired permutation test (Fisher 1935): under the null each text's
    two rows may be swapped. Up to 12 texts all swaps are tried; above, p = (hits + 1) / (draws + 1) over 10,000 random
    ones (Phipson and Smyth 2010), so that it is never 0. Above 2,048 texts, groups of texts are resampled and swapped
    in their place (numerics/statistics/resampling.py). A swap whose pooled value is undefined counts as a hit, which
    can only raise p; a resample whose pooled value is undefined is left out of the interval.

    Where each value is 1 or 0, a hit or a miss, the swaps are counted exactly with any number of texts: the p-value is
    McNemar's (1947), and it counts as a second test, too, because a few texts that differ have a percentile interval
    that is too narrow however many are alike. With a `shift`, their second test is `betting_p` on the differences.
    Otherwise, fewer than 30 texts have the studentised bootstrap as a second test. Texts that differ all alike have
    `alike_p`, with any number of them; of hits and misses the lower one counts.

    A text with a NaN in either row is left out. One text has no spread: its interval is NaN and its p is 1. No text,
    or a pooled value that is undefined on the texts themselves, gives NaN throughout. Raises UnknownNameError on an
    unknown pool and InputError on infinite scores.
    """
    make = pool_of(pool)
    pairs = _known_pairs(first, second)
    gaps = (pairs[0] - pairs[1])[:, 0]
    hits = make is POOLS["mean"] and is_hit_or_miss(pairs.ravel())
    pairs[1] += shift
    count = pairs.shape[1]
    observed = float(_gaps(pairs.mean(axis=1, keepdims=True), make)[0]) if count else math.nan
    if math.isnan(observed):
        return Difference(math.nan, math.nan, math.nan, math.nan, count)
    if count == 1:
        return Difference(observed, math.nan, math.nan, 1.0, count)
    sums = _sums(pairs, seed)
    drawn = draws(len(sums), seed)
    scale = _scale(pairs, make)
    apart = contributions(pairs[0], make) - contributions(pairs[1], make)
    alike = bool(np.ptp(apart) <= TOLERANCE * scale)
    error = 0.0 if alike else _error(apart)
    ends = student_interval(observed, error, count - 1.0) if count < FEWEST else _interval(sums, make, drawn)
    low, high = (_settled(end, scale) for end in ends)
    observed = _settled(observed, scale)
    if hits and not shift:
        p = second_test = _discordant_p(gaps)
    else:
        p = _p_value(pairs, sums, make, observed, drawn)
        second_test = _second_test(np.hstack([*pairs]), _of_columns(make, pairs.shape[2]), observed, alike, seed)
        if hits and abs(shift) < 1:
            bet = betting_p(gaps, shift, Bounds(-1.0, 1.0))
            second_test = min(second_test, bet) if alike else bet
    return Difference(observed, low, high, p, count, second_test, error)


def against(
    values: Float[np.ndarray, "texts parts"],
    number: float,
    pool: str = "mean",
    bounds: Bounds | None = None,
) -> Difference:
    """Compare the pooled value of many texts with a number.

    The interval is the percentile bootstrap of `pooled_interval`. The p-value is that of `difference` under the null
    that each text may equally well lie on the other side of the number, at the same distance. For a pool other than the
    mean, each text counts with its share in the value, by the pool's slopes at the means. Where each value is 1 or 0,
    a hit or a miss, both tests are the exact binomial test, with any number of texts, and the interval is Wilson's:
    such values cannot lie evenly around most numbers.

    With `bounds`, the second test is the better of the studentised bootstrap and `betting_p`: the former cannot tell
    how values spread that are nearly all alike, the latter how they spread within their range
    (benchmarks/claim_rules.py).

    A text with a NaN is left out; no text, or an undefined value, gives NaN throughout. One text has no spread: its
    interval is NaN and its p is 1.
    """
    make = pool_of(pool)
    known = values[~np.isnan(values).any(axis=1)].astype(np.float64)
    value, low, high = pooled_interval(known, pool)
    if math.isnan(value):
        return Difference(math.nan, math.nan, math.nan, math.nan, len(known))
    scale = max(abs(number), float(np.abs(make(np.abs(known).mean(axis=0, keepdims=True))).sum()))
    hits = make is POOLS["mean"] and 0 < number < 1 and is_hit_or_miss(known[:, 0])
    if hits and len(known) > 1:
        low, high = share_interval(int(known[:, 0].sum()), len(known))
    gap, low, high = (_settled(end - number, scale) for end in (value, low, high))
    if len(known) == 1:
        return Difference(gap, math.nan, math.nan, 1.0, 1)
    apart = contributions(known, make)
    alike = bool(np.ptp(apart) <= TOLERANCE * scale)
    if hits:
        p = second_test = share_p(known[:, 0], number)
    else:
        shares = gap + apart
        p = _evenness_p(np.where(np.abs(shares) <= TOLERANCE * scale, 0.0, shares)[:, None])
        second_test = _second_test(known, lambda means: make(means) - number, gap, alike)
        if bounds is not None and bounds.low < number < bounds.high and len(known) < FEW:
            second_test = min(second_test, betting_p(known[:, 0], number, bounds))
    return Difference(gap, low, high, p, len(known), second_test, 0.0 if alike else _error(apart))


def _known_pairs(
    first: Float[np.ndarray, "texts parts"], second: Float[np.ndarray, "texts parts"]
) -> Float[np.ndarray, "2 known parts"]:
    """Both rows of the texts that have no NaN. Raises InputError on infinite scores."""
    pairs = np.stack([first, second])
    if np.isinf(pairs).any():
        raise InputError("scores to compare must be finite, or NaN for a text without a score; got an infinite one.")
    return pairs[:, ~np.isnan(pairs).any(axis=(0, 2))].astype(np.float64)


def _sums(pairs: Pairs, seed: int) -> Sums:
    return grouped(np.hstack([*pairs, np.ones((pairs.shape[1], 1))]), seed)


def _evenness_p(shares: Float[np.ndarray, "texts 1"], seed: int = 0) -> float:
    """The p-value of `difference` from zeros, without the rest of it: values lie evenly around 0."""
    pairs, make = _known_pairs(shares, np.zeros_like(shares)), POOLS["mean"]
    if not pairs.size:
        return math.nan
    if pairs.shape[1] == 1:
        return 1.0
    sums = _sums(pairs, seed)
    observed = _settled(float(pairs[0].mean()), _scale(pairs, make))
    return _p_value(pairs, sums, make, observed, draws(len(sums), seed))


def _discordant_p(gaps: Gaps) -> float:
    """The p-value of all swaps of hits and misses: that of the texts that differ, each of which may be either way."""
    return share_p((gaps[gaps != 0] > 0).astype(np.float64), 0.5) if gaps.any() else 1.0


def _second_test(
    columns: Float[np.ndarray, "texts columns"], statistic: Pool, observed: float, alike: bool, seed: int = 0
) -> float:
    """The studentised bootstrap if there are few texts, that of `alike_p` if they are all alike, otherwise NaN."""
    if alike:
        return alike_p(observed, columns, statistic)
    return studentised_p(columns, statistic, draws(len(columns), seed).resamples()) if len(columns) < FEW else math.nan


def _error(shares: Gaps) -> float:
    """The standard error of a sum of the texts' contributions."""
    return float(shares.std(ddof=1)) / math.sqrt(len(shares))


def contributions(values: Float[np.ndarray, "texts parts"], make: Pool) -> Float[np.ndarray, " texts"]:
    """Each text's contribution to the pooled value beyond its mean share: deviations times the pool's slopes."""
    centre = values.mean(axis=0)
    if make is POOLS["mean"]:
        return values[:, 0] - centre[0]
    slopes = []
    for part in range(values.shape[1]):
        step = np.zeros((1, values.shape[1]))
        step[0, part] = 1e-6 * max(1e-6, float(np.abs(values[:, part]).max()))
        slopes.append(float((make(centre + step) - make(centre - step))[0]) / (2 * step[0, part]))
    shares: Float[np.ndarray, " texts"] = (values - centre) @ np.array(slopes)
    return shares


def _of_columns(make: Pool, parts: int) -> Pool:
    """The gap from the means of both methods' parts side by side."""
    return lambda means: make(means[:, :parts]) - make(means[:, parts:])


def _gaps(means: SampleMeans, make: Pool) -> Gaps:
    """Pooled value of the first method minus that of the second, per sample; NaN if it is undefined."""
    return make(means[0]) - make(means[1])


def _scale(pairs: Pairs, make: Pool) -> float:
    """What rounding errors are relative to: not the difference, but the magnitudes that are subtracted."""
    return float(np.nansum(make(np.abs(pairs).mean(axis=1))))


def _settled(value: float, scale: float) -> float:
    """The value, or 0 for a rounding error."""
    return 0.0 if abs(value) <= TOLERANCE * scale else value


def _interval(sums: Sums, make: Pool, drawn: Draws) -> tuple[float, float]:
    """Percentiles of the gap over resampled texts."""
    # One product for both sides: two products of few columns would take many times as long.
    resampled = np.concatenate([weights @ sums for weights in drawn.resamples()])
    means = (resampled[:, :-1] / resampled[:, -1:]).reshape(len(resampled), 2, -1).swapaxes(0, 1)
    low, high = np.nanquantile(_gaps(means, make), [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return float(low), float(high)


def _p_value(pairs: Pairs, sums: Sums, make: Pool, observed: float, drawn: Draws) -> float:
    """Share of the swaps whose gap is at least as far from 0 as the observed one."""
    count = pairs.shape[1]
    least = abs(observed) - TOLERANCE * _scale(pairs, make)
    shares = np.stack(np.hsplit(sums[:, :-1] / count, 2))
    if count <= EXACT_TEXTS:
        swaps = (np.arange(2**count)[:, None] >> np.arange(count)) & 1 == 1
        return _hits(shares, swaps, make, least) / len(swaps)
    hits = sum(_hits(shares, swaps, make, least) for swaps in drawn.swaps)
    return (hits + 1) / (RESAMPLES + 1)


def _hits(shares: Float[np.ndarray, "2 groups parts"], swaps: Swaps, make: Pool, least: float) -> int:
    """Number of swaps with a gap of at least `least` in magnitude, or an undefined one.

    `shares` are what each text, or group of texts, adds to the two means.
    """
    first, second = shares
    swapped = swaps.astype(np.float64)
    if make is POOLS["mean"]:
        # For a mean, each text's gap changes its sign: one product instead of four.
        gaps = (first - second)[:, 0].sum() - 2 * (swapped @ (first - second)[:, 0])
        return int((np.abs(gaps) >= least).sum())
    kept = 1 - swapped
    # The sums of both sides after the swap. Moving differences from one mean to the other would save a product, but
    # would leave rounding errors where a part is exactly 0, and a pool may divide by it.
    means = np.stack([kept @ first + swapped @ second, swapped @ first + kept @ second])
    gaps = np.abs(_gaps(means, make))
    return int((np.isnan(gaps) | (gaps >= least)).sum())
