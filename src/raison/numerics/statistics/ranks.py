"""Mean ranks over several metrics, whose values cannot be averaged because their units differ."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from raison.core.errors import InputError


def mean_ranks(
    values: Float[np.ndarray, "methods metrics"], higher_is_better: Sequence[bool]
) -> Float[np.ndarray, " methods"]:
    """Mean rank of each method over the metrics; 1 is best, methods with equal values share their mean rank.

    A NaN cell has no rank: the metric's other methods are ranked among themselves, and the method's mean is over the
    metrics that it has (NaN if it has none). Raises InputError unless there is one direction per metric.

    There is no test over the metrics here: Friedman's test assumes independent blocks, and metrics of the same
    explanations are not independent.
    """
    # Imported here: scipy.stats takes a fifth of a second to import, and every command that writes a table imports this
    # module.
    from scipy.stats import rankdata

    methods, metrics = values.shape
    if len(higher_is_better) != metrics:
        raise InputError(f"give one direction per metric: {metrics} metrics, {len(higher_is_better)} directions.")
    signs = np.where(np.asarray(higher_is_better, dtype=bool), -1.0, 1.0)
    ranks = np.full((methods, metrics), np.nan)
    for column, losses in enumerate((values * signs).T):
        there = ~np.isnan(losses)
        ranks[there, column] = rankdata(losses[there])
    counts = (~np.isnan(ranks)).sum(axis=1)
    return np.where(counts > 0, np.nansum(ranks, axis=1) / np.maximum(counts, 1), np.nan)
