"""Passes whose way back follows rules, over many texts, in batches of bounded size."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.rules import BackwardRules
from raison.core.dims import Embeddings
from raison.core.inputs.encoding import Encoding
from raison.core.internals.rules import Difference, Rules
from raison.core.targets.target import Target
from raison.models.gradients.rules.function_mode import RuleBook, applied, followed
from raison.models.gradients.rules.relevance import relevance_rules
from raison.models.gradients.rules.rescale import rescale_rules
from raison.models.passes.batching import TokenBatch, placed, run_grouped
from raison.models.passes.forward import ForwardPasses
from raison.models.stack.query_blocks import query_blocks
from raison.models.stack.recomputed import NotInARowError, recomputed, stack_of
from raison.models.stack.tap import tap

LONG = 256
"""Tokens from which a causal model's layers are computed again on the way back, and attention in blocks."""
_LENGTH: ContextVar[int] = ContextVar("raison_ruled_length", default=0)


@contextmanager
def computed_as(tokens: int) -> Iterator[None]:
    """Inside, this thread computes shorter texts the way it computes those of so many tokens."""
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
        # Of a causal model nothing but the last layer's states is read.
        self._layers = stack_of(self._core) if network.readout is not None and network.stacks is None else []

    def again(self, tokens: int) -> bool:
        """Whether the layers are computed again for texts of so many tokens."""
        return bool(self._layers) and tokens >= LONG

    def ruled_gradients(
        self, encoding: Encoding, embeds: Embeddings, rules: Rules, target: Target
    ) -> tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]:
        points = 2 if isinstance(rules, Difference) else 1
        lengths = encoding.lengths
        found: dict[int, Tensor] = {}
        values = torch.zeros(len(encoding), points, dtype=torch.float64)

        def run(rows: list[int]) -> tuple[Tensor, Tensor]:
            part = encoding.select(rows)
            width = part.input_ids.shape[1]
            own = Difference(rules.starts[rows, :width]) if isinstance(rules, Difference) else rules
            return self._gradients(part, embeds[rows, :width], own, target.rows(torch.as_tensor(rows)))

        for rows, (scalars, gradients) in run_grouped(
            self._passes.budget, [length * points for length in lengths], run
        ):
            values[rows] = scalars.reshape(points, len(rows)).T.double()
            for row, gradient in zip(rows, gradients, strict=True):
                found[row] = gradient[: lengths[row]]
        return [found[row] for row in range(len(encoding))], values

    def _gradients(
        self, part: Encoding, embeds: Embeddings, rules: Rules, target: Target
    ) -> tuple[Float[Tensor, " points"], Embeddings]:
        """The target's value of every row, texts first, and the gradients of the texts."""
        texts = list(range(len(part)))
        if isinstance(rules, Difference):
            embeds = torch.cat([embeds, rules.starts.to(embeds)])
            texts, book = texts * 2, rescale_rules(2 * len(part))
        else:
            book = relevance_rules(rules)
        embeds = embeds.detach().requires_grad_()
        batch, repeated = _batch(part, texts), target.rows(torch.as_tensor(texts))
        long = self.again(max(batch.ids.shape[1], _LENGTH.get()))
        if long:
            # A layer that is computed again would add to a stored prompt once more.
            batch = replace(batch, prefix=0)

        def scalars() -> Tensor:
            with applied(book, self._core):
                logits = self._passes.forward(batch, embeds)
                if isinstance(rules, Difference):
                    return repeated.scalar(logits)
            # What is asked of the logits is no part of the model: its slope is where relevance starts.
            return repeated.scalar(logits)

        # Eager attention: fused kernels show neither softmax nor products.
        with torch.enable_grad(), tap(self._core, (), ()):
            found = self._by_layers(scalars, book, embeds, len(part)) if long else None
            if found is None:
                values = scalars()
                found = values.detach(), torch.autograd.grad(values[: len(part)].sum(), embeds)[0]
        values, gradients = found[0], found[1][: len(part)]
        return values.cpu(), gradients.to(torch.promote_types(gradients.dtype, torch.float32)).cpu()

    def _by_layers(
        self, scalars: Callable[[], Tensor], book: RuleBook, embeds: Embeddings, texts: int
    ) -> tuple[Tensor, Embeddings] | None:
        """Values and gradients with what one layer keeps at a time; None where the layers are not one chain."""
        try:
            with query_blocks(partial(followed, book)), self._passes.network.quiet():
                with recomputed(self._layers) as walk:
                    values = scalars()
                with applied(book, self._core):
                    return values.detach(), walk.gradients(values[:texts].sum(), embeds)
        except NotInARowError:
            self._layers = []
            return None


def _batch(part: Encoding, texts: list[int]) -> TokenBatch:
    lengths = part.attention_mask.sum(1)
    batch = TokenBatch(part.input_ids[texts], part.type_ids[texts], lengths[texts], part.prefix_length)
    return placed(batch, part, texts)
