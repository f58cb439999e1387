"""Gradients of many beginnings of one token sequence, from one forward pass of the longest."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from raison.core.capabilities.embeddings import Path
from raison.core.dims import Embeddings, Points
from raison.core.inputs.encoding import Encoding
from raison.core.targets.target import Target
from raison.models.gradients.path_gradients import PathGradients, RowGradients, Sums
from raison.models.passes.batching import groups, shrinking
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.outputs.readout import Readout
from raison.progress import steps_of

READS = 256
"""Predictions over the whole vocabulary that a pass with gradients holds at a time."""


class SharedGradients(PathGradients):
    """Gradients of a generative language model, shared among texts that are beginnings of one another.

    A decoder computes the states of a sequence's beginning on its way through the whole sequence, so one forward pass
    of the longest text serves all. Other texts are separate rows.
    """

    def __init__(self, passes: ForwardPasses, readout: Readout) -> None:
        self._passes = passes
        self._readout = readout
        self._apart = RowGradients(passes.brief, passes.budget)
        self._batches = True

    def along(self, encoding: Encoding, path: Path, positions: Points, weights: Points, target: Target) -> Sums:
        if len(encoding) > 1 and encoding.nested and _agree(encoding, path, positions):
            return self._shared(encoding, path, positions, weights, target)
        return self._apart.along(encoding, path, positions, weights, target)

    def _shared(self, encoding: Encoding, path: Path, positions: Points, weights: Points, target: Target) -> Sums:
        """One forward pass of the longest text per point, and one backward pass per text and point."""
        lengths = encoding.lengths
        longest = max(range(len(lengths)), key=lengths.__getitem__)
        ends = torch.as_tensor(lengths) - 1
        values = torch.zeros(len(encoding), len(positions), dtype=torch.float64)
        sums: list[Tensor | None] = [None] * len(encoding)

        def run(some: list[int]) -> list[Tensor]:
            embeds = path(longest, positions[some])[:, : lengths[longest]].detach().requires_grad_()
            with torch.enable_grad():
                hidden = self._hidden(encoding.select([longest]), embeds)
                states = hidden[:, ends.to(hidden.device)].detach().requires_grad_()
                scalars = self._scalars(states, target)
                # A prediction depends on its own state alone: one backward pass of the head serves all of them.
                (slopes,) = torch.autograd.grad((weights[some].to(scalars) @ scalars).sum(), states)
            values[:, some] = scalars.detach().T.cpu().double()
            gradients = self._backwards(hidden, embeds, slopes, ends)
            pairs = zip(gradients, lengths, strict=True)
            return [
                part.sum(0)[:length].to(torch.promote_types(part.dtype, torch.float32)).cpu() for part, length in pairs
            ]

        with steps_of("passes", len(positions)) as progress:
            for group in self._portions(len(positions), lengths[longest], len(encoding)):
                for done, parts in shrinking(self._passes.budget, run, group):
                    progress(len(done))
                    sums = [part if known is None else known + part for known, part in zip(sums, parts, strict=True)]
        return [total for total in sums if total is not None], values

    def _portions(self, points: int, width: int, reads: int) -> Iterator[list[int]]:
        """Points in portions that fit the budget of tokens and of predictions over the vocabulary."""
        size = max(1, min(self._passes.budget.tokens // width, READS // reads))
        for start in range(0, points, size):
            yield list(range(start, min(start + size, points)))

    def _hidden(self, row: Encoding, embeds: Embeddings) -> Float[Tensor, "points tokens hidden"]:
        """Last hidden states of one text at each point."""
        network, count = self._passes.network, len(embeds)
        ids = row.input_ids.expand(count, -1).to(network.device)
        with network.quiet():
            return network.hidden(ids, embeds)

    def _scalars(self, states: Float[Tensor, "points reads hidden"], target: Target) -> Float[Tensor, "points reads"]:
        """The target's value at the end of each beginning, at each point."""
        points, reads = states.shape[:2]
        logits = self._readout.logits([states.flatten(0, 1)[:, None]])
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return target.rows(torch.arange(reads).repeat(points)).scalar(logits).reshape(points, reads)

    def _backwards(
        self, hidden: Tensor, embeds: Tensor, slopes: Float[Tensor, "points reads hidden"], ends: Int[Tensor, " reads"]
    ) -> list[Float[Tensor, "points tokens hidden"]]:
        """Backward passes from the slope at each end to the embeddings: together if they are small, otherwise one by
        one.

        A small pass mostly loads weights, so several at once cost little more than one.
        """

        def starts(reads: Sequence[int]) -> Tensor:
            table = hidden.new_zeros(len(reads), *hidden.shape)
            table[range(len(reads)), :, ends[list(reads)].to(hidden.device)] = slopes[:, list(reads)].transpose(0, 1)
            return table

        every = range(len(ends))
        if self._batches and len(ends) * hidden.shape[0] * hidden.shape[1] <= self._passes.budget.tokens:
            try:
                return list(
                    torch.autograd.grad(hidden, embeds, starts(every), retain_graph=True, is_grads_batched=True)[0]
                )
            except torch.OutOfMemoryError:
                raise
            except RuntimeError:
                # Some operations of adapters and quantised weights do not support batches of gradients.
                self._batches = False
        return [
            torch.autograd.grad(hidden, embeds, starts([read])[0], retain_graph=read < every[-1])[0] for read in every
        ]


def _agree(encoding: Encoding, path: Path, positions: Points) -> bool:
    """Whether the path of every text is the beginning of the longest text's path, at every point."""
    lengths = encoding.lengths
    longest = max(range(len(lengths)), key=lengths.__getitem__)
    for group in groups([lengths[longest]] * len(positions), 4096):
        whole = path(longest, positions[group])
        if any(
            not torch.equal(path(text, positions[group])[:, :length], whole[:, :length])
            for text, length in enumerate(lengths)
        ):
            return False
    return True
