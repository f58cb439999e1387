"""Coalitions from intermediate predictions: how to draw input masks, and the weights of the coalitions.

A causal model that reads a text with the units of a mask kept also predicts after each kept unit: one pass gives the
values of all beginnings of the mask, a chain of coalitions. A *class* (i, j) is the coalitions of i units of which the
last is unit j (Progressive Inference, equation 12); arrays over classes have i - 1 and j - 1 as indices, i below n.

A draw (i, j) of the law P' gives a mask of i - 1 of the first j - 1 units, at random, and of j; with the `suffix` of
section 3.2.4, also of j + 1 to n. The chain of such a mask with m units contains, in the class (k, l), on average

    C(l-1, k-1) C(j-l-1, i-k-1) / C(j-1, i-1)    for k < i, l < j,
    1                                            for k = i, l = j, and for k = i + l - j, l > j with the suffix,

coalitions, and m over all classes and the full set. Equations 14, 17 and 21 print C(j-l, i-k), which counts units after
l as if j were not known to be one of them: their probabilities sum to more than one. They also divide by m, so that
every pass counts the same, though in the collected data every coalition does: `MaskLaw.share` is divided, `expected`
is not.
"""

import contextlib
import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import nnls
from scipy.special import gammaln

from raison.numerics.shapley.regression import Rows
from raison.paths import cache_folder

Sampling = Literal["optimal", "shapley"]
Classes = Float[np.ndarray, "... units units"]
Weights = Float[np.ndarray, " masks"]
Counts = int | Int[np.ndarray, "..."]

LONGEST_OPTIMAL = 50
"""From more units on, "optimal" is "shapley": the least squares take 0.7 s here, 5 s for 70 units."""


@dataclass(frozen=True, slots=True)
class MaskLaw:
    """How masks of a text of n units are drawn, and the coalitions that they lead to.

    `draw` is P', the probability of each class (i, j). `share` is P^D as equation 15 has it, every pass counting the
    same. `before` is the number of coalitions of each class that one mask gives on average before the drawn j,
    `expected` that of all: up to its sum, how often a class occurs in the collected data.
    """

    draw: Classes
    share: Classes
    before: Classes
    expected: Classes
    suffix: bool


@lru_cache(maxsize=256)
def mask_law(units: int, sampling: Sampling, suffix: bool = True) -> MaskLaw:
    """The law of the masks of a text of `units` units, at least 2.

    "optimal" brings P^D near the Shapley distribution P* (equation 16) and is stored on disk by n. "shapley" draws
    masks from P* itself (appendix C), as does "optimal" for texts that are too long for it.
    """
    optimal = sampling == "optimal" and units <= LONGEST_OPTIMAL
    draw = _stored_draw(units, suffix) if optimal else shapley_distribution(units)
    share = expected_coalitions(draw / mask_sizes(units, suffix), suffix)
    law = MaskLaw(draw, share, _before(draw), expected_coalitions(draw, suffix), suffix)
    for array in (law.draw, law.share, law.before, law.expected):
        array.setflags(write=False)
    return law


def sample_masks(law: MaskLaw, count: int, rng: np.random.Generator) -> Rows:
    """`count` masks: (i, j) from P', i - 1 of the first j - 1 units, j, and with the suffix all units after j."""
    units = len(law.draw)
    classes = rng.choice(units * units, size=count, p=law.draw.ravel())
    size, last = (classes // units)[:, None], (classes % units)[:, None]
    place = np.arange(units)
    # Ranks of random numbers among the units before the last: the smallest are a uniform choice.
    order = np.where(place < last, rng.random((count, units)), 2.0).argsort(axis=1).argsort(axis=1)
    early = (order < size) & (place < last)
    return early | ((place >= last) if law.suffix else (place == last))


def beginnings(mask: Bool[np.ndarray, " units"]) -> Rows:
    """The coalitions that a mask leads to, one after each of its units; the full set is left out."""
    places = np.flatnonzero(mask)[: len(mask) - 1]
    return mask & (np.arange(len(mask)) <= places[:, None])


def pass_weights(rows: Rows, law: MaskLaw) -> Weights:
    """w = P* / P^D of each coalition's class, with P^D of equation 15 (section 3.2.3).

    Rows must be coalitions that the law can produce. A pass that produces more coalitions counts more in the data than
    P^D assumes: weighted sums do not have the expectation that they have under P*, and vary less.
    """
    size, last = _class_of(rows)
    return np.asarray(shapley_distribution(len(law.draw))[size - 1, last - 1] / law.share[size - 1, last - 1])


def class_weights(rows: Rows, law: MaskLaw) -> Weights:
    """P* of each coalition's class over how often the class occurs in the collected data.

    Weighted sums over the coalitions of a class get the expectation that they have under P* only if all coalitions of a
    class are equally likely. The suffix breaks this, because it adds runs of units after j. `coalition_weights` are
    exact.
    """
    size, last = _class_of(rows)
    weights = shapley_distribution(len(law.draw))[size - 1, last - 1] / law.expected[size - 1, last - 1]
    return np.asarray(weights * law.expected.sum())


def coalition_weights(rows: Rows, law: MaskLaw) -> Weights:
    """P*(S) / P^D(S) of each coalition S itself; equal to `class_weights` without the suffix.

    A coalition of k units that ends in the t units l - t + 1 to l comes from draws with j > l, alike for its whole
    class, and from those with i = k - s, j = l - s for s = 0 to t - 1, each of which leads to one of the
    C(l-s-1, k-s-1) coalitions of its class.
    """
    size, last = _class_of(rows)
    density = law.before[size - 1, last - 1]
    of_class = _log_binomial(last - 1, size - 1)
    inside = np.ones(len(rows), dtype=bool)
    for step in range(int(size.max(initial=0)) if law.suffix else min(len(rows), 1)):
        inside = inside & (step < size)
        row = np.flatnonzero(inside)
        inside[row] = rows[row, last[row] - 1 - step]
        row = np.flatnonzero(inside)
        drawn, end = size[row] - step, last[row] - step
        with np.errstate(divide="ignore"):
            log = np.log(law.draw[drawn - 1, end - 1]) + of_class[row] - _log_binomial(end - 1, drawn - 1)
        density[row] += np.exp(log)
    return np.asarray(shapley_distribution(len(law.draw))[size - 1, last - 1] / density * law.expected.sum())


def shapley_distribution(units: int) -> Classes:
    """P* by classes: P*_i proportional to 1 / (i (n - i)), and within a size every coalition alike (equation 13)."""
    size, last = np.arange(1, units)[:, None], np.arange(1, units + 1)
    with np.errstate(invalid="ignore"):
        share = np.exp(_log_binomial(last - 1, size - 1) - _log_binomial(units, size))
    of_size = 1.0 / (size * (units - size))
    inner = np.where(last >= size, share, 0.0) * of_size / of_size.sum()
    return np.concatenate([inner, np.zeros((1, units))])


def expected_coalitions(draw: Classes, suffix: bool = True) -> Classes:
    """The average number of coalitions of each class that a mask from P' gives, for any number of laws at once."""
    units = draw.shape[-1]
    counts = np.array(draw, dtype=np.float64)
    if suffix:
        for last in range(1, units):
            counts[..., 1:, last] += counts[..., :-1, last - 1]
    counts[..., -1, :] = 0
    return counts + _before(draw)


def mask_sizes(units: int, suffix: bool = True) -> Classes:
    """The number of units of a mask of each class: i, and with the suffix also all n - j after the last drawn one
    (i')."""
    size, last = np.arange(1, units + 1)[:, None], np.arange(1, units + 1)
    return np.asarray(size + (units - last) * suffix, dtype=np.float64)


def optimal_draw(units: int, suffix: bool = True) -> Classes:
    """The P' >= 0 whose coalitions are nearest to the Shapley distribution, in least squares (equations 15 and 16)."""
    size, last = np.nonzero(np.tri(units, dtype=bool).T[: units - 1])
    single = np.zeros((len(size), units, units))
    single[np.arange(len(size)), size, last] = 1 / mask_sizes(units, suffix)[size, last]
    design = expected_coalitions(single, suffix)[:, size, last].T
    solution, _ = nnls(design, shapley_distribution(units)[size, last])
    draw = np.zeros((units, units))
    draw[size, last] = solution / solution.sum()
    return draw


def _before(draw: Classes) -> Classes:
    """The average number of coalitions of each class among those that end before the drawn j.

    In n^2 steps, going back from the last unit, with r(k, l) the probability that j comes after l and that k of the
    first l units are in the mask. Given both, all sets of k units are equally likely, so the probabilities that l or l
    + 1 is in it follow by counting.
    """
    units = draw.shape[-1]
    size = np.arange(units + 1)
    before = np.zeros(draw.shape)
    later = np.zeros((*draw.shape[:-2], units + 1))
    for last in range(units - 1, 0, -1):
        # Unit last + 1 is not in the mask, or in it before j, or it is j.
        now = later * np.maximum(last + 1 - size, 0) / (last + 1)
        now[..., :-1] += later[..., 1:] * size[1:] / (last + 1) + draw[..., last]
        later = now
        before[..., last - 1] = later[..., 1:] * size[1:] / last
    return before


def _class_of(rows: Rows) -> tuple[Int[np.ndarray, " masks"], Int[np.ndarray, " masks"]]:
    """Size and last unit, counted from 1, of coalitions that are not empty."""
    return rows.sum(axis=1), rows.shape[1] - rows[:, ::-1].argmax(axis=1)


def _stored_draw(units: int, suffix: bool) -> Classes:
    """`optimal_draw`, read from the cache if it is there and complete; otherwise computed and, if possible, stored."""
    path = cache_folder() / "progressive" / f"equation-16-{'suffix' if suffix else 'plain'}-{units}.npy"
    draw = _read(path, units)
    if draw is None:
        draw = optimal_draw(units, suffix)
        # If it cannot be stored, it is computed again the next time.
        with contextlib.suppress(OSError):
            _write(path, draw)
    return draw


def _read(path: Path, units: int) -> Classes | None:
    try:
        draw: Classes = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if draw.shape != (units, units) or draw.dtype != np.float64:
        return None
    whole = np.isfinite(draw).all() and (draw >= 0).all() and abs(draw.sum() - 1) < 1e-9
    return draw if whole else None


def _write(path: Path, draw: Classes) -> None:
    """Written atomically, so that another process never reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.save(file, draw)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _log_binomial(n: Counts, k: Counts) -> Float[np.ndarray, "..."]:
    return np.asarray(gammaln(np.add(n, 1)) - gammaln(np.add(k, 1)) - gammaln(np.subtract(n, k) + 1))
