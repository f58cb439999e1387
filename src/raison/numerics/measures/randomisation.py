"""One number for how much explanations depend on a model's parameters, from their similarity by randomised blocks."""

import numpy as np
from jaxtyping import Float

from raison.core.errors import InputError, UnknownNameError
from raison.numerics.measures.curves import area as area_below

Blocks = Float[np.ndarray, " blocks"]

ORDERS = ("cascading", "independent")
"""From the last block back, one more at a time; one block at a time."""


def area(similarities: Blocks, order: str) -> float:
    """Area under a curve of randomisation: the lower, the more the explanation depends on the parameters.

    `similarities` are those to the explanation of the whole model, of shape (blocks,): entry i with i + 1 blocks
    randomised, or with block i + 1 from the last. "cascading": the trapezoidal area over the share of randomised blocks
    from 0, where the similarity is 1, to 1. "independent": the mean over blocks, which have no order. It is 1 for an
    explanation that ignores the parameters. NaN if an entry is NaN. After Adebayo et al. 2018, who show the curves.
    Raises InputError without blocks, UnknownNameError for another order.
    """
    if order not in ORDERS:
        raise UnknownNameError("order of randomisation", order, ORDERS)
    if not len(similarities):
        raise InputError("a curve of randomisation has at least one block.")
    if order == "independent":
        return float(np.mean(similarities))
    return area_below(np.concatenate([[1.0], similarities]))
