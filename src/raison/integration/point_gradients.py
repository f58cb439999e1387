"""Gradients at single points, each multiplied by its own displacement."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.dims import Embeddings, Points
from raison.core.problem import Problem
from raison.integration.repeated_texts import charge, portions, repeated

Places = Callable[[Sequence[tuple[int, int]]], tuple[Embeddings, Embeddings]]
"""Rows of (text, number) -> the points and the moves of each, as wide as the whole encoding."""


def point_contributions(
    problem: Problem, rows: Sequence[tuple[int, int]], places: Places, features: int
) -> Float[Tensor, "batch tokens"]:
    """For each text, the sum over its rows of move . d v / d embeddings at the row's point, summed over features.

    `features` is the width of word embeddings. In float64, zero on padding and where nothing moves. One forward and one
    backward pass per row; the points of all texts are batched together, a portion at a time.
    """
    one = torch.ones(1, dtype=torch.float64)
    scores = torch.zeros(problem.encoding.input_ids.shape, dtype=torch.float64)
    for some in portions(rows, 2 * scores.shape[1] * features):
        texts = [text for text, _ in some]
        part = repeated(problem, texts)
        points, moves = (some_places[:, : part.encoding.input_ids.shape[1]] for some_places in places(some))

        def path(row: int, positions: Points, points: Embeddings = points) -> Embeddings:
            return points[row].expand(len(positions), -1, -1)

        gradients, _ = part.path_gradients(path, one, one)
        charge(problem, texts, part)
        for row, gradient in enumerate(gradients):
            move = moves[row, : len(gradient)].cpu().double()
            scores[texts[row], : len(gradient)] += (move * gradient.double()).sum(-1)
    return scores
