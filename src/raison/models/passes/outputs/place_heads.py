"""Class logits of predictions that are made at places of a text: tags of tokens, and words at masks."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from raison.core.dims import Logits
from raison.models.passes.outputs.heads import Head, NetworkOutput, Parts, class_logits
from raison.models.passes.token_batch import TokenBatch
from raison.models.stack.hooks import hooked


@dataclass(frozen=True, slots=True, eq=False)
class TagHead(Head):
    """Tags of tokens, read at the tokens of one entity.

    `rest` says that the last class stands for all tags that no other class has.
    """

    rest: bool
    in_place: ClassVar[bool] = True

    def parts(self, outputs: NetworkOutput, batch: TokenBatch) -> Parts:
        return _at_places(class_logits(outputs), batch)

    def logits(self, parts: Parts, batch: TokenBatch) -> Logits:
        return mixed(parts, batch, self.rest)

    def predicted(self, parts: Parts) -> Int[Tensor, "rows parts"]:
        return parts.argmax(-1)


@dataclass(frozen=True, slots=True, eq=False)
class WordHead(Head):
    """Words at a mask: the words that the encoding's reading names, and all others of the vocabulary as one class.

    `decoder` is the model's matrix from states to words. It gets only the states of the masks, because a word for every
    token of a batch would be the largest tensor by far.
    """

    decoder: nn.Module | None
    in_place: ClassVar[bool] = True

    def reading(self, batch: TokenBatch) -> AbstractContextManager[None]:
        if self.decoder is None or batch.spans is None:
            return nullcontext()

        def narrow(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            whole = bool(args) and args[0].dim() == 3 and args[0].shape[1] == batch.ids.shape[1]
            return ((_at_places(args[0], batch), *args[1:]), kwargs) if whole else None

        return hooked([self.decoder], before=narrow)

    def parts(self, outputs: NetworkOutput, batch: TokenBatch) -> Parts:
        logits = class_logits(outputs)
        return _at_places(logits, batch) if logits.shape[1] == batch.ids.shape[1] else logits

    def logits(self, parts: Parts, batch: TokenBatch) -> Logits:
        return mixed(parts, batch, rest=True)

    def predicted(self, parts: Parts) -> Int[Tensor, "rows parts"]:
        return parts.argmax(-1)


def mixed(parts: Parts, batch: TokenBatch, rest: bool) -> Logits:
    """Class logits from the logits z_t of the outputs at places t, with the encoding's weights w_t and choices c_t.

    The softmax over the classes gives sum_t w_t softmax(z_t)[c_t], and with `rest` the remainder as the last class. A
    common constant, sum_t w_t logsumexp(z_t), makes the logits of a single place the model's own.
    """
    assert batch.reading is not None, "an encoding without a place to explain"
    z = parts.to(torch.promote_types(parts.dtype, torch.float32))
    weights, choices = batch.reading.weights.to(z), batch.reading.choices.to(z.device)
    chosen = z.gather(2, choices)
    if rest:
        others = z.scatter(2, choices, -torch.inf).logsumexp(2, keepdim=True)
        chosen = torch.cat([chosen, others], 2)
    if chosen.shape[1] == 1:
        return chosen[:, 0]
    total = z.logsumexp(2, keepdim=True)
    shares: Float[Tensor, "reads places classes"] = chosen - total + weights.log()[..., None]
    return shares.logsumexp(1) + (weights[..., None] * total).sum(1)


def _at_places(logits: Float[Tensor, "rows tokens _size"], batch: TokenBatch) -> Float[Tensor, "reads places _size"]:
    """The logits at the places that are read; all of them if no place is named."""
    if batch.spans is None:
        return logits
    rows = torch.arange(len(logits)) if batch.reads is None else batch.reads
    return logits[rows[:, None].to(logits.device), batch.spans.to(logits.device)]
