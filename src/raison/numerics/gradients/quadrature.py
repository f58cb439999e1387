"""Numerical integration over the unit interval."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


def gauss_legendre(
    points: int, dtype: torch.dtype = torch.float64
) -> tuple[Float[Tensor, " points"], Float[Tensor, " points"]]:
    """Nodes on [0, 1] in ascending order and their weights, which sum to 1.

    Exact for polynomials of degree 2 * points - 1; the ends of the interval are not among the nodes.
    """
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return torch.as_tensor((nodes + 1) / 2, dtype=dtype), torch.as_tensor(weights / 2, dtype=dtype)
