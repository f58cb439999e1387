"""Scores of tokens from backward passes under rules."""

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.rules import BackwardRules
from raison.core.dims import Embeddings
from raison.core.internals.rules import FiniteDifference, Relevance
from raison.core.problem import Problem
from raison.integration.repeated_texts import own_embeddings


def propagated(problem: Problem, rules: Relevance) -> list[Float[Tensor, "_tokens hidden"]]:
    """Embeddings times the gradient under the rules, per text, in float64: 1 forward and 1 backward pass."""
    ends = own_embeddings(problem)
    problem.count_forward()
    _count_backward(problem)
    gradients, _ = problem.model.ask(BackwardRules).ruled_gradients(problem.encoding, ends, rules, problem.target)
    return [ends[text, : len(gradient)].cpu().double() * gradient.double() for text, gradient in enumerate(gradients)]


def differences(
    problem: Problem, starts: Embeddings, ends: Embeddings
) -> tuple[Float[Tensor, "batch tokens"], Float[Tensor, " batch"]]:
    """(ends - starts) times finite differences in place of gradients, summed over features; and v(ends) - v(starts).

    In float64; zero on padding and wherever start and end agree. 2 forward passes and 1 backward pass.
    """
    problem.count_forward()
    problem.count_forward()
    _count_backward(problem)
    gradients, values = problem.model.ask(BackwardRules).ruled_gradients(
        problem.encoding, ends, FiniteDifference(starts), problem.target
    )
    scores = torch.zeros(problem.encoding.input_ids.shape, dtype=torch.float64)
    for text, gradient in enumerate(gradients):
        way = (ends[text] - starts[text])[: len(gradient)].cpu().double()
        scores[text, : len(gradient)] = (way * gradient.double()).sum(-1)
    return scores, values[:, 0] - values[:, 1]


def _count_backward(problem: Problem) -> None:
    for text in range(len(problem.encoding)):
        problem.ledger.gradients[text] += 1
