"""Token vectors through layers: bounded memory changes no number, and nothing is left on the model."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn

import raison
from raison.core.capabilities.decomposition import Anatomy
from raison.core.capabilities.passes import Passes
from raison.core.errors import UnsupportedError
from raison.core.internals.anatomy import Trace
from raison.numerics.attention.decomposition import (
    Choices,
    contributions,
    head_output,
    head_vectors,
    layer_output,
    mixed_vectors,
    slope,
    through_layer,
    with_bias,
)
from tests.literal_layers import TEXTS, load
from tests.tiny import ENCODER_DECODERS, TAPPED, TINY

DECOMPOSED = sorted(set(TAPPED) - {*ENCODER_DECODERS})


def carried(anatomy: Anatomy, trace: Trace, choices: Choices) -> list[Tensor]:
    """The vectors after every layer."""
    found: list[Tensor] = []
    for layer in range(anatomy.layers):
        before = found[-1] if found else None
        found.append(through_layer(before, trace, layer, anatomy.weights(layer), choices))
    return found


@pytest.mark.parametrize("name", DECOMPOSED)
def test_parts_make_what_the_layers_made(name: str) -> None:
    model = load(name, torch.float32)
    encoding = model.encode(TEXTS)
    anatomy = model.ask(Anatomy)
    for text, trace in enumerate(anatomy.traces(encoding)):
        for layer in range(anatomy.layers):
            found = layer_output(trace, layer, anatomy.weights(layer))
            torch.testing.assert_close(found, trace.states[layer + 1], rtol=1e-4, atol=1e-5)
        logits = model.ask(Passes).logits(encoding.select([text])).detach()[0]
        torch.testing.assert_close(head_output(trace, anatomy.head()), logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "llama", "modernbert"])
def test_vectors_sum_to_the_state_after_every_layer(name: str) -> None:
    model = load(name)
    anatomy = model.ask(Anatomy)
    trace = anatomy.traces(model.encode(TEXTS[:1]))[0]
    found = carried(anatomy, trace, Choices())
    for layer, vectors in enumerate(found):
        state = trace.states[layer + 1]
        read = trace.rows != 0 if layer == anatomy.layers - 1 else torch.ones_like(trace.rows, dtype=torch.bool)
        torch.testing.assert_close(vectors.sum(1), state[read], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "gpt2", "mistral", "t5_encoder"])
@pytest.mark.parametrize("scratch", [1, 3000, 20000])
def test_little_memory_changes_no_number(name: str, scratch: int) -> None:
    """One head and one source at a time, one head and a few, a few heads."""
    model = load(name)
    anatomy = model.ask(Anatomy)
    trace = anatomy.traces(model.encode(TEXTS[1:2]))[0]
    whole, part = (
        head_vectors(carried(anatomy, trace, choices)[-1], trace, anatomy.head())
        for choices in (Choices("half"), Choices("half", scratch))
    )
    torch.testing.assert_close(part, whole, rtol=1e-12, atol=1e-12)
    pieces = list(contributions(trace, 1, anatomy.weights(1), scratch))
    ((_, together),) = contributions(trace, 1, anatomy.weights(1))
    assert len(pieces) > 1 or scratch == 20000
    torch.testing.assert_close(torch.cat([piece for _, piece in pieces]), together, rtol=1e-12, atol=1e-12)


class Largest(torch.overrides.TorchFunctionMode):
    """Notes the largest tensor that any call makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        found = func(*args, **(kwargs or {}))
        if isinstance(found, Tensor):
            self.elements = max(self.elements, found.numel())
        return found


def test_products_stay_within_the_scratch_memory() -> None:
    model = load("bert")
    anatomy = model.ask(Anatomy)
    trace = anatomy.traces(model.encode(TEXTS[1:2]))[0]
    weights = anatomy.weights(1)
    vectors = through_layer(None, trace, 0, anatomy.weights(0), Choices())
    with Largest() as bounded:
        mixed_vectors(vectors, trace.attention[1], weights.value, weights.output, 2 * vectors[:, 0].numel())
    with Largest() as free:
        through_layer(vectors, trace, 1, weights, Choices())
    # The result itself is as large as the vectors; the feed-forward layer is twice as wide.
    assert bounded.elements == vectors.numel()
    assert free.elements >= 2 * vectors.numel()


def test_a_bias_that_no_vector_meets_is_not_lost() -> None:
    vectors = torch.tensor([[[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]])
    found = with_bias(vectors, torch.tensor([0.0, 6.0]))
    assert found[0].tolist() == [[1.0, 3.0], [2.0, 3.0], [0.0, 0.0]]
    assert found[1].tolist() == [[0.0, 2.0]] * 3


def test_a_bias_goes_by_absolute_products() -> None:
    vectors = torch.tensor([[[1.0, 1.0], [-3.0, 0.0]]])
    assert with_bias(vectors, torch.tensor([4.0, 0.0]))[0].tolist() == [[2.0, 1.0], [0.0, 0.0]]


def test_the_slope_is_zero_at_zero() -> None:
    x = torch.tensor([0.0, 2.0, -1.0])
    assert slope(torch.tanh, x).tolist() == pytest.approx(
        [0.0, torch.tanh(x[1]).item() / 2, torch.tanh(x[1] / 2).item()]
    )


def test_adapters_are_part_of_the_matrices() -> None:
    """A matrix inside another module is found by calling that; the caller's model is training, with dropout."""
    model, tokenizer = TINY["bert"]()
    config = LoraConfig(r=4, lora_dropout=0.5, target_modules=["value", "dense"], init_lora_weights=False)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        wrapped = get_peft_model(model.double(), config)
    loaded = raison.load(wrapped, tokenizer)
    wrapped.train()
    anatomy = loaded.ask(Anatomy)
    trace = anatomy.traces(loaded.encode(TEXTS[:1]))[0]
    terms = head_vectors(carried(anatomy, trace, Choices())[-1], trace, anatomy.head())
    logits = loaded.ask(Passes).logits(loaded.encode(TEXTS[:1])).detach()[0]
    torch.testing.assert_close(terms.sum(0), logits, rtol=1e-10, atol=1e-10)
    assert wrapped.training


class Doubled(nn.Module):
    """A feed-forward matrix that does something else than its weight says."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) + self.inner(x).sin()


def test_layers_that_do_more_than_their_parts_are_refused() -> None:
    model, tokenizer = TINY["bert"]()
    model.bert.encoder.layer[1].output.dense = Doubled(model.bert.encoder.layer[1].output.dense)
    loaded = raison.load(model, tokenizer)
    with pytest.raises(UnsupportedError, match="layer 1 gives different states from its parts"):
        raison.explain(loaded, TEXTS[0], "alti")
    hooks = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]
    assert sum(hooks) == 0
