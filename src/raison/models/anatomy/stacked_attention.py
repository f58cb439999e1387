"""Attention as matrices between positions, in one stack or in an encoder and a decoder that reads it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from raison.core.capabilities.attention_layers import AttentionLayers, Block, Positions, Recorded
from raison.core.inputs.encoding import Encoding
from raison.models.anatomy.tapped_attention import TappedAttention
from raison.models.passes.network import Network
from raison.models.stack.tap import Tap, tap


class OneStack(AttentionLayers):
    """Positions are tokens."""

    def __init__(self, attention: TappedAttention) -> None:
        self._attention = attention

    def positions(self, encoding: Encoding) -> Positions:
        tokens = torch.arange(encoding.input_ids.shape[1]).expand(encoding.input_ids.shape)
        return Positions(encoding.attention_mask, tokens, self._attention.prediction_rows(encoding))

    @contextmanager
    def recorded(self) -> Iterator[Recorded]:
        recorded = Recorded()
        with self._attention.tap() as seen:
            yield recorded
        recorded.blocks = [Block(seen.probabilities[layer]) for layer in sorted(seen.probabilities)]


class TwoStacks(AttentionLayers):
    """An encoder's positions, followed by its decoder's.

    A classifier's decoder reads the text again, after a start token: a token has two positions, one in each stack. A
    writer's rows already hold what each stack reads.
    """

    def __init__(self, network: Network, attention: TappedAttention) -> None:
        self._network = network
        self._attention = attention

    def positions(self, encoding: Encoding) -> Positions:
        read = encoding.attention_mask
        tokens = torch.arange(read.shape[1]).expand(read.shape)
        rows = self._attention.prediction_rows(encoding)
        if self._network.stacks is not None:
            return Positions(read, tokens, rows, self._network.stacks.border)
        again = torch.cat([tokens, tokens - 1], 1)
        return Positions(torch.cat([read, read], 1), again, torch.cat([torch.zeros_like(rows), rows], 1), read.shape[1])

    @contextmanager
    def recorded(self) -> Iterator[Recorded]:
        core, recorded = self._network.core, Recorded()
        with tap(core) as encoder, tap(core.get_decoder()) as decoder:
            yield recorded
        recorded.blocks = _blocks(encoder, decoder)


def _blocks(encoder: Tap, decoder: Tap) -> list[Block]:
    """The encoder's layers, and for each of the decoder's first its own attention, then that to the encoder."""
    blocks = [Block(encoder.probabilities[layer]) for layer in sorted(encoder.probabilities)]
    border = blocks[0].probabilities.shape[-1]
    for number in sorted(decoder.probabilities):
        blocks.append(Block(decoder.probabilities[number], border, 0 if number % 2 else border))
    return blocks
