"""The texts that each bootstrap resample draws and each permutation swaps: the same for all tables with equally many
texts.

Drawing is most of an interval's work, and a study has thousands of intervals over the same texts, so the draws are
stored. Above `LARGEST` texts, groups of texts are drawn in place of texts, and neither time nor memory grows further.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

RESAMPLES = 10_000
LARGEST = 2048
"""Maximum number of texts for which draws are stored; they need at most 41 MB."""
SLICE = 1_000_000
"""Count of numbers drawn at a time: for many texts, a float table of all draws would not fit into memory as well."""

Weights = Float[np.ndarray, "samples texts"]
Swaps = Bool[np.ndarray, "samples texts"]


@dataclass(frozen=True, slots=True)
class Draws:
    """`RESAMPLES` resamples (how often each draws each text) and as many random swaps, in slices."""

    counts: tuple[UInt8[np.ndarray, "_samples texts"], ...]
    swaps: tuple[Bool[np.ndarray, "_samples texts"], ...]

    def resamples(self) -> Iterator[Weights]:
        """The counts as floats, a slice at a time."""
        for counts in self.counts:
            yield counts.astype(np.float64)


@lru_cache(maxsize=3)
def draws(texts: int, seed: int) -> Draws:
    """The draws for `texts` texts, or groups of texts: at most `LARGEST`. The resamples are drawn first."""
    rng = np.random.default_rng(seed)
    counts = tuple(
        _counts(rng.integers(texts, size=(samples, texts), dtype=np.int32)) for samples in _slice_sizes(texts)
    )
    return Draws(counts, tuple(rng.integers(2, size=(n, texts), dtype=np.bool_) for n in _slice_sizes(texts)))


def grouped(values: Float[np.ndarray, "texts parts"], seed: int) -> Float[np.ndarray, "groups parts"]:
    """The values themselves up to `LARGEST` texts; above, their sums over random groups of texts.

    Groups are of two sizes that differ by one at most. Resampling whole groups estimates the same spread of a mean as
    resampling texts: the groups' sums are independent draws, too. With 1,024 groups or more, a standard error found
    so is itself off by about 2 %. Columns of ones among the values count the texts of each group.
    """
    texts = len(values)
    if texts <= LARGEST:
        return values
    groups = texts // -(-texts // LARGEST)
    order = np.random.default_rng((seed, texts)).permutation(texts)
    return np.add.reduceat(values[order], np.arange(groups) * texts // groups, axis=0)


def _counts(drawn: Int[np.ndarray, "samples texts"]) -> UInt8[np.ndarray, "samples texts"]:
    samples, texts = drawn.shape
    cells = drawn + texts * np.arange(samples, dtype=np.int32)[:, None]
    # A text is drawn once on average; 256 draws of one text do not occur in practice.
    return np.bincount(cells.ravel(), minlength=samples * texts).reshape(samples, texts).astype(np.uint8)


def _slice_sizes(texts: int) -> Iterable[int]:
    step = max(1, SLICE // texts)
    return [min(RESAMPLES, start + step) - start for start in range(0, RESAMPLES, step)]
