"""Backward passes that follow rules, over many texts, in batches of bounded size."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from hashlib import blake2b

import torch
from jaxtyping import Float, Int
from torch import Tensor

from raison.core.capabilities.rules import BackwardRules
from raison.core.dims import Embeddings
from raison.core.inputs.encoding import Encoding
from raison.core.internals.rules import FiniteDifference, Rules
from raison.core.targets.target import Target
from raison.models.gradients.rules.function_mode import RuleBook, applied, followed
from raison.models.gradients.rules.relevance import relevance_rules
from raison.models.gradients.rules.rescale import rescale_rules
from raison.models.gradients.shared_rows import alike, back, raw, read_at
from raison.models.passes.batching import run_grouped
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.token_batch import TokenBatch
from raison.models.stack.query_blocks import query_blocks
from raison.models.stack.recomputed import NotInARowError, recomputed, stack_of
from raison.models.stack.tap import tap

LONG = 256
"""Number of tokens from which a causal model recomputes its layers in the backward pass, and computes attention in
blocks."""
_LENGTH: ContextVar[int] = ContextVar("raison_ruled_length", default=0)


@contextmanager
def computed_as(tokens: int) -> Iterator[None]:
    """Inside, this thread computes shorter texts the way it computes those of `tokens` tokens."""
    token = _LENGTH.set(tokens)
    try:
        yield
    finally:
        _LENGTH.reset(token)


class RuledPasses(BackwardRules):
    """One model's passes."""

    def __init__(self, passes: ForwardPasses) -> None:
        self._passes = passes
        network = passes.network
        self._core = network.core
        # Only the last layer's states of a causal model are read.
        self._layers = stack_of(self._core) if network.readout is not None and network.stacks is None else []

    def again(self, tokens: int) -> bool:
        """Whether the layers are computed again for texts of `tokens` tokens."""
        return bool(self._layers) and tokens >= LONG

    def ruled_gradients(
        self, encoding: Encoding, embeds: Embeddings, rules: Rules, target: Target
    ) -> tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]:
        points = 2 if isinstance(rules, FiniteDifference) else 1
        lengths = encoding.lengths
        text_gradients: dict[int, Tensor] = {}
        values = torch.zeros(len(encoding), points, dtype=torch.float64)
        for count, together in self._together(encoding, embeds, rules).items():
            # The gradients of all targets are held in memory.
            sizes = [lengths[texts[0]] * max(points, count) for texts in together]

            def run(rows: list[int], together: Sequence[tuple[int, ...]] = together) -> tuple[Tensor, Tensor]:
                return self._gradients(encoding, [together[row] for row in rows], embeds, rules, target)

            for rows, (scalars, gradients) in run_grouped(self._passes.budget, sizes, run):
                for row, own_scalars, own_gradients in zip(rows, scalars, gradients, strict=True):
                    for text, scalar, gradient in zip(together[row], own_scalars, own_gradients, strict=True):
                        values[text], text_gradients[text] = scalar.double(), gradient[: lengths[text]]
        return [text_gradients[row] for row in range(len(encoding))], values

    def _together(
        self, encoding: Encoding, embeds: Embeddings, rules: Rules
    ) -> Mapping[int, Sequence[tuple[int, ...]]]:
        """The texts that share a forward pass; none do if layers are computed again, once for each target."""
        if self.again(max(*encoding.lengths, _LENGTH.get())):
            return {1: [(text,) for text in range(len(encoding))]}

        def digest(text: int) -> bytes:
            hashed, length = blake2b(digest_size=16), encoding.lengths[text]
            for states in (embeds, rules.starts) if isinstance(rules, FiniteDifference) else (embeds,):
                hashed.update(raw(states[text, :length]))
            return hashed.digest()

        return alike(encoding, digest)

    def _gradients(
        self, encoding: Encoding, together: Sequence[tuple[int, ...]], embeds: Embeddings, rules: Rules, target: Target
    ) -> tuple[Float[Tensor, "rows targets points"], Float[Tensor, "rows targets width hidden"]]:
        """One forward pass of the rows, and one backward pass for each of their targets; all rows have equally many."""
        texts: Int[Tensor, "rows targets"] = torch.as_tensor(together)
        firsts, points = texts[:, 0], 1
        width = int(encoding.attention_mask[firsts].sum(1).max())
        embeds = embeds[firsts, :width]
        if isinstance(rules, FiniteDifference):
            embeds, points = torch.cat([embeds, rules.starts[firsts, :width].to(embeds)]), 2
            book = rescale_rules(len(embeds))
        else:
            book = relevance_rules(rules)
        embeds = embeds.detach().requires_grad_()
        batch, repeated = _batch(encoding, texts.repeat(points, 1), width), target.rows(texts.flatten().repeat(points))
        long = self.again(max(width, _LENGTH.get()))
        if long:
            # A layer that is computed again would extend a stored prompt twice.
            batch = replace(batch, prefix=0)

        def scalars() -> Tensor:
            with applied(book, self._core):
                logits = self._passes.forward(batch, embeds)
                # There is already one for each target if predictions are read at places of the text.
                every = logits if batch.reads is not None else logits.repeat_interleave(texts.shape[1], 0)
                if isinstance(rules, FiniteDifference):
                    return repeated.scalar(every)
            # The target's function of the logits is not part of the model: its ordinary gradient is where relevance
            # starts.
            return repeated.scalar(every)

        # Eager attention: fused kernels show neither softmax nor products.
        with torch.enable_grad(), tap(self._core, (), ()):
            result = self._by_layers(scalars, book, embeds, len(texts)) if long else None
            if result is None:
                values = scalars()
                of_texts = values.reshape(points, *texts.shape)[0]
                result = (
                    values.detach(),
                    torch.stack([gradient[: len(texts)] for gradient in back(of_texts, embeds)], 1),
                )
        values, gradients = result
        values = values.reshape(points, *texts.shape).movedim(0, -1)
        return values.cpu(), gradients.to(torch.promote_types(gradients.dtype, torch.float32)).cpu()

    def _by_layers(
        self, scalars: Callable[[], Tensor], book: RuleBook, embeds: Embeddings, texts: int
    ) -> tuple[Tensor, Float[Tensor, "rows 1 width hidden"]] | None:
        """Values and gradients with the memory of one layer at a time; None if the layers do not form one chain."""
        try:
            with query_blocks(partial(followed, book)), self._passes.network.quiet():
                with recomputed(self._layers) as walk:
                    values = scalars()
                with applied(book, self._core):
                    return values.detach(), walk.gradients(values[:texts].sum(), embeds)[:texts, None]
        except NotInARowError:
            self._layers = []
            return None


def _batch(encoding: Encoding, texts: Int[Tensor, "rows targets"], width: int) -> TokenBatch:
    firsts = texts[:, 0]
    lengths = encoding.attention_mask[firsts].sum(1)
    ids, types = encoding.input_ids[firsts, :width], encoding.type_ids[firsts, :width]
    return read_at(TokenBatch(ids, types, lengths, encoding.prefix_length), encoding, texts)
