"""Gradients integrated along the straight path between two sets of embeddings."""

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.dims import Embeddings, PathEmbeddings, Points
from raison.core.problem import Problem


def integrate(
    problem: Problem, starts: Embeddings, ends: Embeddings, positions: Points, weights: Points
) -> tuple[Float[Tensor, "batch tokens"], Float[Tensor, "batch points"]]:
    """(ends - starts) . sum_p weight_p d v / d embeddings at starts + position_p (ends - starts), summed over features.

    `positions` are on the way, from 0 to 1. Returns the sums in float64, zero on padding and
    wherever start and end agree, and the target's value v at each point. One forward and one backward pass per point.
    """

    def path(text: int, at: Points) -> PathEmbeddings:
        share = at.to(ends)[:, None, None]
        return starts[text] + share * (ends[text] - starts[text])

    gradients, values = problem.path_gradients(path, positions, weights)
    scores = torch.zeros(problem.encoding.input_ids.shape, dtype=torch.float64)
    for text, gradient in enumerate(gradients):
        way = (ends[text] - starts[text])[: len(gradient)].cpu().double()
        scores[text, : len(gradient)] = (way * gradient.double()).sum(-1)
    return scores, values
