"""Attention with the gradients that reach it, in one pass through the whole model."""

from dataclasses import replace

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
            ["label words of several tokens are read in several passes, and each has an attention of its own"],
            'Score the label words by their first tokens (scoring = "first" in the prompt), take label words of one '
            "token, or use input_x_gradient.",
        )


def attention_gradients(model: LanguageModel, encoding: Encoding, target: Target) -> list[tuple[Block, Tensor]]:
    """Each layer's attention, the first layer first, and the gradient of the target's value.

    All texts are one batch; no text's value depends on another's attention. In at least single precision, detached;
    padding may hold anything. A layer that the value does not depend on has the gradient zero. 1 forward and 1 backward
    pass.
    """
    with torch.enable_grad():
        with model.ask(AttentionLayers).recorded() as records:
            # The graph must begin below the first attention layer, even if every parameter is frozen.
            embeds = model.ask(WordEmbeddings).embed(encoding).detach().requires_grad_()
            values = target.scalar(model.ask(Passes).logits(encoding, embeds))
        layers = [block.probabilities for block in records.blocks]
        slopes = torch.autograd.grad(values.sum(), layers, allow_unused=True)
    fine = [replace(block, probabilities=_fine(block.probabilities)) for block in records.blocks]
    return [
        (block, torch.zeros_like(block.probabilities) if slope is None else _fine(slope))
        for block, slope in zip(fine, slopes, strict=True)
    ]


def _fine(tensor: Tensor) -> Tensor:
    return tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32))
