"""Log-probabilities of what does not happen."""

import torch
from jaxtyping import Float
from torch import Tensor


def log_complement(log_probability: Float[Tensor, " masks"]) -> Float[Tensor, " masks"]:
    """log(1 - p) of log p, exact for small and for large p."""
    large = log_probability > -0.7
    return torch.where(large, (-torch.expm1(log_probability)).log(), torch.log1p(-log_probability.exp()))
