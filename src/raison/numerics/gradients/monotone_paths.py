"""Paths from a baseline to a vector through given anchors, monotone in every feature (Sanyal and Ren 2021)."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Strategy = Literal["greedy", "maxcount"]
Vectors = Float[Tensor, "rows features"]


def between(
    first: Float[Tensor, "... features"], second: Float[Tensor, "... features"], vectors: Float[Tensor, "... features"]
) -> Bool[Tensor, "... features"]:
    """Which features of `vectors` lie between those of two others, ends included."""
    return vectors.clamp(torch.minimum(first, second), torch.maximum(first, second)) == vectors


def anchor_costs(
    base: Vectors, current: Vectors, anchors: Float[Tensor, "rows entries features"], steps: int, strategy: Strategy
) -> Float[Tensor, "rows entries"]:
    """The cost of each anchor as the next step from `current` towards `base`; the best anchor costs least.

    "greedy": the squared distance between the anchor and its `monotone` version. "maxcount": the number of features in
    which the two differ.
    """
    changed = ~between(base[:, None], current[:, None], anchors)
    if strategy == "maxcount":
        return changed.sum(-1).to(anchors.dtype)
    step = current - (current - base) / steps
    return (anchors - step[:, None]).mul_(changed).square_().sum(-1)


def monotone(base: Vectors, current: Vectors, anchors: Vectors, steps: int) -> Vectors:
    """The anchors, with every feature that is not between replaced by one m-th of the way from current to base."""
    return torch.where(between(base, current, anchors), anchors, current - (current - base) / steps)


def monotone_points(
    base: Vectors, ends: Vectors, anchors: Float[Tensor, "rows steps features"]
) -> Float[Tensor, "rows points features"]:
    """Points from `base` over the anchors, made monotone, to `ends`: two more than there are anchors.

    The anchors are given in the order in which they were found, from the end; each is made monotone towards the point
    before it.
    """
    steps, points = anchors.shape[1], [ends]
    for number in range(steps):
        points.append(monotone(base, points[-1], anchors[:, number], steps))
    return torch.stack([*points, base], 1).flip(1)


def halved(points: Float[Tensor, "rows points features"], times: int) -> Float[Tensor, "rows _points features"]:
    """The points, with midpoints inserted between neighbours, `times` times."""
    for _ in range(times):
        middles = (points[:, :-1] + points[:, 1:]) / 2
        finer = points.new_empty(len(points), points.shape[1] + middles.shape[1], points.shape[2])
        finer[:, ::2], finer[:, 1::2] = points, middles
        points = finer
    return points
