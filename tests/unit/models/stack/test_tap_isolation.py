"""What an attention tap leaves alone: the model, other models and other threads."""

import copy
import threading

import pytest
import torch
from torch import Tensor, nn

from raison.core.errors import InputError
from raison.models.stack import blocks
from raison.models.stack.tap import STEPS, attention_modules, tap, untapped_copy
from tests.patience import PATIENCE
from tests.threads import in_another
from tests.tiny import TAPPED, eager_logits, padded_batch


def snapshot(model: nn.Module) -> tuple[object, ...]:
    """All that a tap could have changed: configs, weights and hooks."""
    configs = [copy.deepcopy(vars(module.config)) for module in model.modules() if "config" in vars(module)]
    hooks = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]
    forwards = [vars(module).get("forward") for module in model.modules()]
    return configs, hooks, forwards, {name: tensor.tolist() for name, tensor in model.state_dict().items()}


def roll_probabilities(step: str, layer: int, tensor: Tensor) -> Tensor:
    """An edit that gives every attention weight to the next key."""
    return tensor.roll(1, -1) if step == "probabilities" else tensor


@pytest.mark.parametrize("name", TAPPED)
def test_model_is_untouched(name: str) -> None:
    model, inputs = padded_batch(name)
    before, state = snapshot(model), torch.get_rng_state()
    plain = model(**inputs).logits
    with tap(model, record=STEPS, edit=roll_probabilities):
        model(**inputs)
    assert snapshot(model) == before
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(model(**inputs).logits, plain)
    with pytest.raises(RuntimeError, match="on purpose"), tap(model):
        raise RuntimeError("on purpose")
    assert snapshot(model) == before


def test_an_edit_that_raises_leaves_the_model_as_it_was() -> None:
    model, inputs = padded_batch("mistral")
    before = snapshot(model)

    def wrong_shape(_step: str, _layer: int, tensor: Tensor) -> Tensor:
        return tensor[:1]

    with pytest.raises(InputError, match="an edit of query returned shape"), tap(model, edit=wrong_shape):
        model(**inputs)
    assert snapshot(model) == before


def test_sub_configs_may_differ() -> None:
    model, inputs = padded_batch("t5")
    model.get_encoder().config._attn_implementation = "eager"
    before = snapshot(model)
    with tap(model):
        model(**inputs)
    assert snapshot(model) == before


def test_two_models_interleaved() -> None:
    one, inputs = padded_batch("llama")
    # The second model shares the first one's config, as models built from one config do.
    two = type(one)(one.config).eval()
    expected = eager_logits(one, inputs), eager_logits(two, inputs)
    with tap(one) as seen_one:
        assert torch.allclose(two(**inputs).logits, expected[1], atol=1e-5)
        assert not seen_one.probabilities
        with tap(two) as seen_two:
            assert torch.equal(one(**inputs).logits, expected[0])
            assert not seen_two.probabilities
            assert torch.equal(two(**inputs).logits, expected[1])
    assert not torch.equal(seen_one.probabilities[0], seen_two.probabilities[0])
    assert one.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("name", TAPPED)
def test_another_thread_is_not_tapped(name: str) -> None:
    model, inputs = padded_batch(name)
    expected, plain = eager_logits(model, inputs), model(**inputs).logits

    def untapped() -> None:
        # Bit for bit: under masks of its own kind, not of the tap's.
        assert torch.equal(model(**inputs).logits, plain)

    def tapped() -> None:
        with tap(model) as seen:
            assert torch.equal(model(**inputs).logits, expected)
        assert seen.probabilities

    with tap(model, edit=roll_probabilities) as seen:
        in_another(untapped)
        assert not seen.probabilities
        model(**inputs)
        in_another(tapped)
        assert not torch.allclose(model(**inputs).logits, expected, atol=1e-3)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("began", ["before", "inside"])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "mistral", "t5"])
def test_a_pass_of_another_thread_that_meets_the_tap_on_its_way(
    name: str, implementation: str, began: str, padded: bool
) -> None:
    """It begins before the tap and goes on inside, or begins inside and goes on afterwards."""
    model, inputs = padded_batch(name)
    if not padded:
        # Without padding sdpa gets no mask at all, and is causal by a flag.
        inputs = {key: tensor[2:] for key, tensor in inputs.items()}
    model.set_attn_implementation(implementation)
    expected = model(**inputs).logits
    middle, go_on = threading.Event(), threading.Event()

    def pause(*_: object) -> None:
        middle.set()
        assert go_on.wait(PATIENCE)

    handle = attention_modules(model)[1].register_forward_pre_hook(pause)
    results: list[Tensor] = []
    thread = threading.Thread(target=lambda: results.append(model(**inputs).logits))
    opened = tap(model)
    if began == "inside":
        opened.__enter__()
    thread.start()
    assert middle.wait(PATIENCE)
    handle.remove()
    if began == "inside":
        opened.__exit__(None, None, None)
        go_on.set()
        thread.join()
    else:
        with opened:
            go_on.set()
            thread.join()
    assert torch.equal(results[0], expected)


def test_copies_of_a_tapped_model_s_config_are_not_tapped() -> None:
    model, inputs = padded_batch("llama")
    expected = model(**inputs).logits
    with tap(model):
        copied = untapped_copy(model.config)
        inside = blocks.twin(model, {})
    assert copied._attn_implementation == inside.config._attn_implementation == "sdpa"
    assert torch.equal(inside(**inputs).logits, expected)
