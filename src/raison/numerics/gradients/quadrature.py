"""Numerical integration over the unit interval."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


def gauss_legendre(points: int) -> tuple[Float[Tensor, " points"], Float[Tensor, " points"]]:
    """Nodes on [0, 1] in ascending order and their weights, which sum to 1, in float64.

    Exact for polynomials of degree 2 * points - 1; the ends of the interval are not among the nodes.
    """
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return torch.from_numpy((nodes + 1) / 2), torch.from_numpy(weights / 2)
