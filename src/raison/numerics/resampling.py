"""Which texts each bootstrap resample draws, and which a permutation swaps: the same for every table of as many texts.

Drawing is most of an interval's work, and a study has thousands of intervals over the same texts.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int

RESAMPLES = 10_000
KEPT_TEXTS = 512
"""Up to so many texts the draws are kept: 46 MB at most."""
SLICE = 1_000_000
"""Numbers drawn at a time: the table of all draws for many texts would not fit."""

Weights = Float[np.ndarray, "samples texts"]
Swaps = Bool[np.ndarray, "samples texts"]
Draws = tuple[Iterable[Weights], Iterable[Swaps]]


def draws(texts: int, seed: int) -> Draws:
    """`RESAMPLES` resamples, as how often each draws each text, then as many random swaps; in slices of whole ones.

    What is not kept is drawn when it is asked for: the resamples come first.
    """
    return _kept(texts, seed) if texts <= KEPT_TEXTS else _drawn(texts, seed)


@lru_cache(maxsize=1)
def _kept(texts: int, seed: int) -> Draws:
    resamples, swaps = _drawn(texts, seed)
    return tuple(resamples), tuple(swaps)


def _drawn(texts: int, seed: int) -> Draws:
    rng = np.random.default_rng(seed)
    resamples = (_counts(rng.integers(texts, size=(samples, texts), dtype=np.int32)) for samples in _slice_sizes(texts))
    swaps = (rng.integers(2, size=(samples, texts), dtype=np.bool_) for samples in _slice_sizes(texts))
    return resamples, swaps


def _counts(drawn: Int[np.ndarray, "samples texts"]) -> Weights:
    samples, texts = drawn.shape
    cells = drawn + texts * np.arange(samples, dtype=np.int32)[:, None]
    return np.bincount(cells.ravel(), minlength=samples * texts).reshape(samples, texts).astype(np.float64)


def _slice_sizes(texts: int) -> Iterator[int]:
    step = max(1, SLICE // texts)
    for start in range(0, RESAMPLES, step):
        yield min(RESAMPLES, start + step) - start
