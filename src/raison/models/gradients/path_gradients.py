"""Gradients with respect to word embeddings, over many texts and points, in batches of bounded size."""

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

import torch
from jaxtyping import Float, Int
from torch import Tensor

from raison.core.capabilities.embeddings import Path
from raison.core.dims import Embeddings, Logits, Points
from raison.core.encoding import Encoding
from raison.core.target import Target
from raison.models.passes.batching import TokenBatch, TokenBudget, run_grouped

Forward = Callable[[TokenBatch, Embeddings | None], Logits]


def path_gradients(
    forward: Forward,
    budget: TokenBudget,
    encoding: Encoding,
    path: Path,
    points: tuple[Points, Points],
    target: Target,
) -> tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]:
    """See WordEmbeddings.path_gradients; `points` are the positions on the path and their weights.

    Only the sums are kept: memory holds one batch of points at a time.
    """
    positions, weights = points
    lengths = encoding.lengths
    jobs = [(text, point) for text in range(len(encoding)) for point in range(len(positions))]
    sums: list[Tensor | None] = [None] * len(encoding)
    values = torch.zeros(len(encoding), len(positions), dtype=torch.float64)

    def run(rows: list[int]) -> tuple[Tensor, Tensor]:
        return _gradients(forward, encoding, [jobs[row] for row in rows], (path, positions), target)

    for rows, (scalars, gradients) in run_grouped(budget, [lengths[text] for text, _ in jobs], run):
        for row, scalar, gradient in zip(rows, scalars, gradients, strict=True):
            text, point = jobs[row]
            values[text, point] = scalar
            weighted = weights[point] * gradient[: lengths[text]]
            known = sums[text]
            sums[text] = weighted if known is None else known + weighted
    return [found for found in sums if found is not None], values


def _gradients(
    forward: Forward,
    encoding: Encoding,
    jobs: list[tuple[int, int]],
    course: tuple[Path, Points],
    target: Target,
) -> tuple[Float[Tensor, " rows"], Float[Tensor, "rows tokens hidden"]]:
    path, positions = course
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
    batch = TokenBatch(ids, types, lengths, encoding.prefix_length)
    if encoding.spans is not None:
        batch = replace(batch, context=encoding.context[texts, :width], spans=encoding.spans[texts])
    with torch.enable_grad():
        scalars = target.rows(texts).scalar(forward(batch, embeds))
        (gradients,) = torch.autograd.grad(scalars.sum(), embeds)
    return scalars.detach().cpu(), gradients.to(torch.promote_types(gradients.dtype, torch.float32)).cpu()
