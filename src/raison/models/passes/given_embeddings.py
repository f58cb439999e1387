"""A context that replaces the embeddings that a model looks up."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Int
from torch import Tensor, nn

from raison.core.dims import Embeddings
from raison.models.stack.hooks import hooked


@contextmanager
def given_embeddings(tables: Sequence[nn.Module], embeds: Embeddings, tokens_first: bool = False) -> Iterator[None]:
    """The first look-up returns `embeds`; in an encoder-decoder, the second table's first one, one position later.

    An encoder-decoder classifier reads the text twice; in its decoder it follows a start token. Padding that the model
    itself adds (Longformer, to whole windows) keeps its embeddings. `tokens_first` says that tokens are the first axis
    in the model's look-up (XLNet).
    """

    def padded(plain: Tensor) -> Tensor:
        if tokens_first:
            return embeds.to(plain).transpose(0, 1)
        return torch.cat([embeds.to(plain), plain[:, embeds.shape[1] :]], dim=1)

    pending: list[tuple[nn.Module, Callable[[Tensor], Tensor]]] = [(tables[0], padded)]
    if len(tables) > 1:
        pending.append((tables[1], lambda start: torch.cat([start[:, :1], embeds[:, :-1].to(start)], dim=1)))

    def replace(module: nn.Module, _args: object, output: Tensor) -> Tensor:
        if pending and pending[0][0] is module:
            return pending.pop(0)[1](output)
        return output

    with hooked([module for module, _ in pending], after=replace):
        yield


@contextmanager
def causal_embeddings(table: nn.Module, embeds: Embeddings, lengths: Int[Tensor, " rows"]) -> Iterator[None]:
    """The first look-up returns `embeds` for each row's first `lengths` tokens; the tokens after them keep their own
    embeddings. GPT-2 looks up the types of tokens in the same table afterwards."""
    pending = [table]

    def replace(_module: nn.Module, _args: object, output: Tensor) -> Tensor:
        if not pending:
            return output
        pending.pop()
        longer = output.shape[1] - embeds.shape[1]
        if longer == 0:
            return embeds.to(output)
        inside = torch.arange(output.shape[1])[None, :] < lengths[:, None]
        given = nn.functional.pad(embeds.to(output), (0, 0, 0, longer))
        return torch.where(inside[..., None].to(output.device), given, output)

    with hooked([table], after=replace):
        yield
