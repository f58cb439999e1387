"""Value zeroing: how much a layer's output changes when one token's value vector is set to zero."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from raison.core.capabilities.passes import Passes
from raison.core.errors import UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.models.adapters.classifier import Classifier, text_classifier
from raison.models.passes.batching import shrinking
from raison.models.passes.hidden_states import watched_layers
from raison.models.stack.attention_steps import AttentionStep
from raison.models.stack.layers import LayerCall, kept_calls, layer_stack
from raison.models.stack.tap import tap
from raison.progress import steps_of


def check_layers(model: LanguageModel, method: str) -> None:
    """Raise UnsupportedError if single layers cannot be re-run."""
    reading = text_classifier(model)
    if reading is None:
        raise UnsupportedError(
            f"{method} does not work on {model.name}",
            ["only classifiers and language models with a prompt of label words have layers that can be run again"],
            "Use attention_rollout.",
        )
    layer_stack(reading.core)


def value_zeroing_distances(model: LanguageModel, encoding: Encoding) -> Iterator[Float[Tensor, "query key"]]:
    """For one text and each layer, the first one first: 1 - cos(h_i, h_i without the value vector of token j).

    h is the layer's output; its input is the model's own in both cases. In float64, on the CPU, never negative. Costs a
    whole pass, and one of each layer per token, in batches of bounded size.
    """
    check_layers(model, "value_zeroing")
    assert isinstance(model, Classifier)
    stack = layer_stack(model.core)
    with torch.no_grad(), model.quiet():
        for run in _plain_pass(model, stack, encoding):
            yield _distances(model, run)


@dataclass(frozen=True, slots=True, eq=False)
class _RecordedLayer:
    """A layer in the plain pass: what it was called with, and what it gave."""

    number: int
    layer: nn.Module
    call: LayerCall
    output: Float[Tensor, "1 tokens hidden"]


def _plain_pass(model: Classifier, stack: list[nn.Module], encoding: Encoding) -> list[_RecordedLayer]:
    """All layers, the first one first."""
    # Under a tap the layers get masks of the same kind as in the re-runs.
    with kept_calls(stack) as calls, watched_layers(model.core) as outputs, tap(model.core, ()):
        model.ask(Passes).logits(encoding)
    # A prompt with label words of several tokens is run once for each of their prefixes, and the text itself last.
    last = outputs[-len(stack) :]
    return [_RecordedLayer(number, layer, calls[number], last[number]) for number, layer in enumerate(stack)]


def _distances(model: Classifier, plain: _RecordedLayer) -> Float[Tensor, "query key"]:
    tokens = plain.output.shape[1]
    whole = plain.output[0].cpu().double()
    distances = torch.zeros(tokens, tokens, dtype=torch.float64)

    def run(some: list[int]) -> Tensor:
        def zero(step: AttentionStep, _layer: int, tensor: Tensor) -> Tensor:
            if step != "value":
                return tensor
            emptied = tensor.clone()
            emptied[list(range(len(some))), :, some] = 0
            return emptied

        with tap(model.core, (), {plain.number}, zero, plain.number):
            hidden = plain.call.hidden.expand(len(some), -1, -1)
            without = plain.call.expanded(len(some)).run(plain.layer, hidden)
        # Single precision would lose the difference of two numbers near 1.
        cosine = torch.nn.functional.cosine_similarity(without.cpu().double(), whole, dim=-1)
        return (1 - cosine).clamp_min(0).T

    size = max(1, model.budget.tokens // tokens)
    with steps_of("passes", tokens) as progress:
        for start in range(0, tokens, size):
            for some, part in shrinking(model.budget, run, list(range(start, min(start + size, tokens)))):
                progress(len(some))
                distances[:, some] = part
    return distances
