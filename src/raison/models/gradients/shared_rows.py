"""Rows with equal tokens and embeddings, as for several targets of a text, share one forward pass."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from raison.core.dims import Embeddings
from raison.core.inputs.encoding import Encoding
from raison.models.passes.token_batch import TokenBatch, placed


def alike(encoding: Encoding, digest: Callable[[int], bytes]) -> dict[int, list[tuple[int, ...]]]:
    """Groups of texts with equal tokens and equal digests, by the size of the groups.

    A text's digest covers everything else that its states are computed from. It is computed only for tokens that occur
    at least twice.
    """
    groups: dict[tuple[tuple[int, ...], bytes], list[int]] = {}
    if encoding.spans is not None and encoding.reading is None:
        # An answer's place belongs to the row.
        return {1: [(text,) for text in range(len(encoding))]}
    pairs = zip(encoding.input_ids.tolist(), encoding.type_ids.tolist(), encoding.lengths, strict=True)
    tokens = [(*ids[:length], *types[:length]) for ids, types, length in pairs]
    count = Counter(tokens)
    for text, row_tokens in enumerate(tokens):
        groups.setdefault((row_tokens, digest(text) if count[row_tokens] > 1 else b""), []).append(text)
    sizes: dict[int, list[tuple[int, ...]]] = {}
    for texts in groups.values():
        sizes.setdefault(len(texts), []).append(tuple(texts))
    return dict(sorted(sizes.items()))


def raw(values: Tensor) -> memoryview:
    """The bytes of a tensor, for a digest."""
    return values.detach().cpu().contiguous().view(torch.uint8).numpy().data


def read_at(batch: TokenBatch, encoding: Encoding, texts: Int[Tensor, "rows targets"]) -> TokenBatch:
    """The batch with the places where the predictions of each row's texts are read."""
    rows, targets = texts.shape
    if encoding.reading is None or targets == 1:
        return placed(batch, encoding, texts[:, 0])
    return replace(placed(batch, encoding, texts.flatten()), reads=torch.arange(rows).repeat_interleave(targets))


def back(values: Float[Tensor, "rows targets"], embeds: Embeddings) -> list[Embeddings]:
    """The gradient for each target of the rows."""
    last = values.shape[1] - 1
    return [
        torch.autograd.grad(column.sum(), embeds, retain_graph=number < last)[0]
        for number, column in enumerate(values.unbind(1))
    ]
