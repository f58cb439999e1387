"""Gradients that can be differentiated again, as attacks on explanations need."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.dims import Embeddings, Points
from raison.core.problem import Problem
from raison.integration.repeated_texts import repeated


def values_at(problem: Problem, embeds: Embeddings) -> Float[Tensor, " batch"]:
    """The target's value at these word embeddings, twice differentiable; the prediction itself is `logits_at`."""
    # The fused kernels have a first derivative only.
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        return problem.target.scalar(problem.model.ask(WordEmbeddings).logits_at(problem.encoding, embeds))


def gradients_at(problem: Problem, embeds: Embeddings) -> Embeddings:
    """d target / d embeds at `embeds`, itself differentiable with respect to these. 1 forward and 1 backward pass."""
    with torch.enable_grad():
        point = embeds if embeds.requires_grad else embeds.detach().requires_grad_()
        (gradients,) = torch.autograd.grad(values_at(problem, point).sum(), point, create_graph=True)
    return gradients


def integrate_at(
    problem: Problem, starts: Embeddings, ends: Embeddings, positions: Points, weights: Points
) -> Float[Tensor, "batch tokens"]:
    """As straight_path.integrate, differentiable with respect to `ends`, and to `starts` if they are in the graph.

    All points of all texts are one batch.
    """
    positions, weights = positions.to(ends), weights.to(ends)
    way = ends - starts
    path = starts[:, None] + positions[None, :, None, None] * way[:, None]
    rows = [text for text in range(len(ends)) for _ in positions]
    gradients = gradients_at(repeated(problem, rows), path.flatten(0, 1)).reshape(path.shape)
    mean = torch.einsum("p,bpth->bth", weights, gradients.to(weights))
    return (way * mean).double().sum(-1)
