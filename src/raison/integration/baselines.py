"""Baselines: the starts of paths through embedding space."""

from typing import Annotated, Literal

import torch

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.dims import Embeddings
from raison.core.errors import UnsupportedError
from raison.core.problem import Problem
from raison.core.removals import IN_PLACE_NAMES, InPlace
from raison.core.settings.fields import Setting

Baseline = Literal["removal", "zero", InPlace]
"""A token in place of every unit's tokens, zeros, or the problem's own removal."""
Steps = Annotated[int, Setting(least=1, words="a whole number of at least 1, such as 50")]
"""The number of points on a path."""


def baseline_name(problem: Problem, method: str, wanted: str) -> str:
    """The baseline in use: "zero", or a removal in place that the model has, which may be one of its adapter's own.

    Deletion has no embedding, so "removal" then takes the model's first removal in place. Raises UnsupportedError if
    the tokenizer has no such token.
    """
    if wanted == "zero":
        return "zero"
    token = problem.removal if wanted == "removal" else wanted
    available = [removal for removal in problem.model.removals if removal != "delete"]
    if token in available:
        return token
    if wanted == "removal" and available:
        return available[0]
    choices = [*(name for name in available if name in IN_PLACE_NAMES), "zero"]
    raise UnsupportedError(
        f"{method} has no baseline '{wanted}' here",
        [
            f"the tokenizer has no {token} token"
            if wanted != "removal"
            else "the tokenizer has no token for this removal"
        ],
        f"Use baseline={' or '.join(repr(choice) for choice in choices)}.",
    )


def baseline_embeddings(problem: Problem, ends: Embeddings, name: str) -> Embeddings:
    """The baseline's embeddings; tokens outside of units keep their embeddings from `ends`."""
    if name == "zero":
        start = torch.zeros_like(ends)
    else:
        words = problem.model.ask(WordEmbeddings)
        start = words.embed(words.removed(problem.encoding, name)).detach()
    return torch.where(problem.encoding.scored.to(ends.device)[..., None], start, ends)
