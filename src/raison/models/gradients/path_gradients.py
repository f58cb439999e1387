"""Gradients with respect to word embeddings, over many texts and points, in batches of bounded size."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from itertools import groupby

import torch
from jaxtyping import Float, Int
from torch import Tensor

from raison.core.capabilities.embeddings import Path
from raison.core.dims import Embeddings, Logits, Points
from raison.core.inputs.encoding import Encoding
from raison.core.targets.target import Target
from raison.models.gradients.shared_rows import alike, back, raw, read_at
from raison.models.passes.batching import TokenBudget, groups, run_grouped
from raison.models.passes.token_batch import TokenBatch

DIGESTED = 4096
"""Tokens of a path that are compared with those of another at a time."""

Forward = Callable[[TokenBatch, Embeddings | None], Logits]
_Job = tuple[tuple[int, ...], int]
"""A one-row batch of texts, and the number of a point."""
Sums = tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]


class PathGradients(ABC):
    """How gradients along paths are computed; see WordEmbeddings.path_gradients."""

    @abstractmethod
    def along(self, encoding: Encoding, path: Path, positions: Points, weights: Points, target: Target) -> Sums:
        """The weighted sums of each text, and the target's values."""


class RowGradients(PathGradients):
    """Every different text and point is a separate row, and targets of equal texts share its forward pass.

    Only sums are kept: memory holds one batch of points at a time.
    """

    def __init__(self, forward: Forward, budget: TokenBudget) -> None:
        self._forward = forward
        self._budget = budget

    def along(self, encoding: Encoding, path: Path, positions: Points, weights: Points, target: Target) -> Sums:
        lengths = encoding.lengths
        sums: list[Tensor | None] = [None] * len(encoding)
        values = torch.zeros(len(encoding), len(positions), dtype=torch.float64)
        # Rows with equally many targets share backward passes, so that none is wasted.
        for count, together in alike(encoding, partial(_digest, encoding, path, positions)).items():
            jobs = [(texts, point) for texts in together for point in range(len(positions))]

            def run(rows: list[int], jobs: list[_Job] = jobs) -> tuple[Tensor, Tensor]:
                return self._gradients(encoding, [jobs[row] for row in rows], path, positions, target)

            # The gradients of all targets are held in memory.
            sizes = [count * lengths[texts[0]] for texts, _ in jobs]
            for rows, (scalars, gradients) in run_grouped(self._budget, sizes, run):
                for row, own_scalars, own_gradients in zip(rows, scalars, gradients, strict=True):
                    texts, point = jobs[row]
                    for text, scalar, gradient in zip(texts, own_scalars, own_gradients, strict=True):
                        values[text, point] = scalar
                        weighted = weights[point] * gradient[: lengths[text]]
                        known = sums[text]
                        sums[text] = weighted if known is None else known + weighted
        return [total for total in sums if total is not None], values

    def _gradients(
        self, encoding: Encoding, jobs: "list[_Job]", path: Path, positions: Points, target: Target
    ) -> tuple[Float[Tensor, "rows targets"], Float[Tensor, "rows targets tokens hidden"]]:
        """One forward pass of the rows, and one backward pass for each of their targets; all rows have equally many."""
        texts: Int[Tensor, "rows targets"] = torch.as_tensor([job_target for job_target, _ in jobs])
        firsts = texts[:, 0]
        lengths = encoding.attention_mask[firsts].sum(1)
        width = int(lengths.max())
        embeds = torch.cat(
            [
                path(text, positions[[point for _, point in text_jobs]])[:, :width]
                # A text's points lie next to each other: texts of equal length stay in order when jobs are sorted.
                for text, text_jobs in groupby(jobs, key=lambda job: job[0][0])
            ]
        )
        embeds = embeds.detach().requires_grad_()
        ids, types = encoding.input_ids[firsts, :width], encoding.type_ids[firsts, :width]
        batch = read_at(TokenBatch(ids, types, lengths, encoding.prefix_length), encoding, texts)
        with torch.enable_grad():
            logits = self._forward(batch, embeds)
            # There is already one for each target if predictions are read at places of the text.
            every = logits if batch.reads is not None else logits.repeat_interleave(texts.shape[1], 0)
            scalars = target.rows(texts.flatten()).scalar(every).reshape(texts.shape)
            gradients = torch.stack(back(scalars, embeds), 1)
        return scalars.detach().cpu(), gradients.to(torch.promote_types(gradients.dtype, torch.float32)).cpu()


def _digest(encoding: Encoding, path: Path, positions: Points, text: int) -> bytes:
    """A digest of a path's embeddings at all points, few of which are held at a time."""
    digest, length = blake2b(digest_size=16), encoding.lengths[text]
    for some in groups([length] * len(positions), DIGESTED):
        digest.update(raw(path(text, positions[some])[:, :length]))
    return digest.digest()
