"""Gradients with respect to word embeddings, over many texts and points, in batches of bounded size."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter

import torch
from jaxtyping import Float, Int
from torch import Tensor

from raison.core.capabilities.embeddings import Path
from raison.core.dims import Embeddings, Logits, Points
from raison.core.inputs.encoding import Encoding
from raison.core.targets.target import Target
from raison.models.passes.batching import TokenBatch, TokenBudget, placed, run_grouped

Forward = Callable[[TokenBatch, Embeddings | None], Logits]
Sums = tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]


class PathGradients(ABC):
    """How gradients along paths are computed; see WordEmbeddings.path_gradients."""

    @abstractmethod
    def along(self, encoding: Encoding, path: Path, positions: Points, weights: Points, target: Target) -> Sums:
        """The weighted sums of each text, and the target's values."""


class RowGradients(PathGradients):
    """Every text and point is a row of its own. Only sums are kept: memory holds one batch of points at a time."""

    def __init__(self, forward: Forward, budget: TokenBudget) -> None:
        self._forward = forward
        self._budget = budget

    def along(self, encoding: Encoding, path: Path, positions: Points, weights: Points, target: Target) -> Sums:
        lengths = encoding.lengths
        jobs = [(text, point) for text in range(len(encoding)) for point in range(len(positions))]
        sums: list[Tensor | None] = [None] * len(encoding)
        values = torch.zeros(len(encoding), len(positions), dtype=torch.float64)

        def run(rows: list[int]) -> tuple[Tensor, Tensor]:
            return self._gradients(encoding, [jobs[row] for row in rows], path, positions, target)

        for rows, (scalars, gradients) in run_grouped(self._budget, [lengths[text] for text, _ in jobs], run):
            for row, scalar, gradient in zip(rows, scalars, gradients, strict=True):
                text, point = jobs[row]
                values[text, point] = scalar
                weighted = weights[point] * gradient[: lengths[text]]
                known = sums[text]
                sums[text] = weighted if known is None else known + weighted
        return [found for found in sums if found is not None], values

    def _gradients(
        self, encoding: Encoding, jobs: list[tuple[int, int]], path: Path, positions: Points, target: Target
    ) -> tuple[Float[Tensor, " rows"], Float[Tensor, "rows tokens hidden"]]:
        texts: Int[Tensor, " rows"] = torch.as_tensor([text for text, _ in jobs])
        lengths = encoding.attention_mask[texts].sum(1)
        width = int(lengths.max())
        embeds = torch.cat(
            [
                path(text, positions[[point for _, point in own]])[:, :width]
                # A text's points lie next to each other: texts of equal length stay in order when jobs are sorted.
                for text, own in groupby(jobs, key=itemgetter(0))
            ]
        )
        embeds = embeds.detach().requires_grad_()
        ids, types = encoding.input_ids[texts, :width], encoding.type_ids[texts, :width]
        batch = placed(TokenBatch(ids, types, lengths, encoding.prefix_length), encoding, texts)
        with torch.enable_grad():
            scalars = target.rows(texts).scalar(self._forward(batch, embeds))
            (gradients,) = torch.autograd.grad(scalars.sum(), embeds)
        return scalars.detach().cpu(), gradients.to(torch.promote_types(gradients.dtype, torch.float32)).cpu()
