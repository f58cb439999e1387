"""Attention with the gradients that reach it, in one pass through the whole model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from raison.core.capabilities.attention_layers import AttentionLayers, Block
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.core.targets.target import Target
from raison.models.adapters.classifier import Classifier


def check_one_pass(model: LanguageModel, method: str) -> None:
    """Raise UnsupportedError if a prediction takes several passes, so that no attention has all its gradients."""
    if isinstance(model, Classifier) and model.readout is not None and model.readout.branches != ((),):
        raise UnsupportedError(
            f"{method} does not work on {model.name} with this prompt",
            ["label words of several tokens are read in several passes, each with its own attention"],
            'Score the label words by their first tokens (scoring = "first" in the prompt), use label words of one '
            "token, or use input_x_gradient.",
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """Rows of a batch, and the target of each."""

    rows: Sequence[int]
    target: Target


def attention_gradients(
    model: LanguageModel, encoding: Encoding, turns: Sequence[Turn]
) -> Iterator[list[tuple[Block, Tensor]]]:
    """For each turn, every layer's attention, the first layer first, and the gradient of the targets' values.

    All texts are one batch; no text's value depends on another's attention. In at least single precision, detached;
    entries of padding are undefined. The gradient is zero for a layer that the value does not depend on, and for rows
    without a target. 1 forward pass, and a backward pass for each turn.
    """
    with torch.enable_grad(), model.ask(AttentionLayers).recorded() as records:
        # The graph must begin below the first attention layer, even if every parameter is frozen.
        embeds = model.ask(WordEmbeddings).embed(encoding).detach().requires_grad_()
        logits = model.ask(Passes).logits(encoding, embeds)
    layers = [block.probabilities for block in records.blocks]
    fine = [replace(block, probabilities=_fine(block.probabilities)) for block in records.blocks]
    for number, turn in enumerate(turns):
        with torch.enable_grad():
            value = turn.target.scalar(logits[list(turn.rows)]).sum()
        slopes = torch.autograd.grad(value, layers, allow_unused=True, retain_graph=number + 1 < len(turns))
        yield [
            (block, torch.zeros_like(block.probabilities) if slope is None else _fine(slope))
            for block, slope in zip(fine, slopes, strict=True)
        ]


def _fine(tensor: Tensor) -> Tensor:
    return tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32))
