"""Stored prompts: used while the model is as it was, dropped as soon as it is not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel

from raison.models.passes.prefixes.prefix import STORED, PrefixStore, compute_prefix
from raison.models.stack.caches import given_cache
from raison.models.stack.eval_mode import half_precision
from raison.models.stack.hooks import hooked
from tests.tiny import TINY

IDS = torch.tensor([5, 9, 7, 3])


def _base() -> PreTrainedModel:
    return TINY["llama"]()[0].base_model


@contextmanager
def _counted(base: nn.Module) -> Iterator[list[int]]:
    """One entry for each pass; no hook of the caller's: with one, no prompt's states would be stored."""
    passes: list[int] = []

    def add(*_: object) -> None:
        passes.append(1)

    with hooked([base], before=add):
        yield passes


def test_a_store_of_a_model_with_hooks_of_others_keeps_nothing() -> None:
    base = _base()
    store = PrefixStore(base)
    kept = store.get(IDS)
    handle = base.register_forward_hook(lambda _module, _args, _output: None)
    assert store.get(IDS) is not store.get(IDS)
    handle.remove()
    assert store.get(IDS) is kept


def test_states_keys_and_values_of_a_prompt() -> None:
    base = _base()
    prefix = compute_prefix(base, IDS)
    read = DynamicCache()
    plain = base(input_ids=IDS[None], use_cache=True, **given_cache(base, read))
    torch.testing.assert_close(prefix.states, plain.last_hidden_state[0])
    assert len(prefix) == 4
    assert not prefix.states.requires_grad
    for stored, (keys, values, _) in zip(prefix.layers, read, strict=True):
        assert stored is not None
        torch.testing.assert_close(stored[0], keys)
        torch.testing.assert_close(stored[1], values)
        assert not stored[0].requires_grad


def test_a_pass_shares_the_stored_tensors_and_leaves_them_alone() -> None:
    base = _base()
    prefix = compute_prefix(base, IDS)
    before = [tensor.clone() for stored in prefix.layers if stored for tensor in stored]
    cache = prefix.cache(3)
    for layer, stored in zip(cache.layers, prefix.layers, strict=True):
        assert stored is not None
        assert layer.keys.shape[0] == 3
        assert layer.keys.data_ptr() == stored[0].data_ptr()
        assert layer.values.data_ptr() == stored[1].data_ptr()
    base(input_ids=torch.tensor([[1, 2]] * 3), use_cache=True, **given_cache(base, cache))
    assert cache.get_seq_length() == 6
    assert prefix.cache(1).get_seq_length() == 4
    after = [tensor for stored in prefix.layers if stored for tensor in stored]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_prompts_are_kept_and_the_least_recently_used_goes() -> None:
    base = _base()
    store = PrefixStore(base)
    prompts = [torch.tensor([number, 1]) for number in range(STORED + 1)]
    with _counted(base) as passes:
        for prompt in prompts[:STORED]:
            store.get(prompt)
        assert store.get(prompts[0]) is store.get(prompts[0])
        assert len(passes) == STORED
        store.get(prompts[STORED])
        store.get(prompts[0])
        assert len(passes) == STORED + 1
        store.get(prompts[1])
        assert len(passes) == STORED + 2


def test_a_closed_store_neither_gives_nor_keeps() -> None:
    base = _base()
    store = PrefixStore(base)
    with _counted(base) as passes:
        kept = store.get(IDS)
        with store.closed():
            with store.closed():
                assert store.get(IDS) is not kept
            store.get(IDS + 1)
        assert len(passes) == 3
        assert store.get(IDS) is kept
        store.get(IDS + 1)
        assert len(passes) == 4


def _copied(base: PreTrainedModel) -> None:
    with torch.no_grad():
        weight = base.layers[1].mlp.up_proj.weight
        weight.copy_(weight.flip(0))


def _through_data(base: PreTrainedModel) -> None:
    weight = base.layers[1].mlp.up_proj.weight
    weight.data.copy_(weight.data.flip(0))


def _new_data(base: PreTrainedModel) -> None:
    norm = base.layers[0].input_layernorm.weight
    norm.data = norm.data * 2


def _replaced(base: PreTrainedModel) -> None:
    norm = base.layers[0].input_layernorm
    norm.weight = nn.Parameter(norm.weight.detach() * 2)


def _one_value(base: PreTrainedModel) -> None:
    with torch.no_grad():
        base.embed_tokens.weight[9, 3] += 1


def _hooked(base: PreTrainedModel) -> None:
    base.embed_tokens.register_forward_hook(lambda _module, _args, output: output + 1)


def _setting(base: PreTrainedModel) -> None:
    base.layers[1].self_attn.scaling = 0.9


CHANGES: list[Callable[[PreTrainedModel], None]] = [
    _copied,
    _through_data,
    _new_data,
    _replaced,
    _one_value,
    _hooked,
    _setting,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_model_is_run_again(change: Callable[[PreTrainedModel], None]) -> None:
    base = _base()
    store = PrefixStore(base)
    before = store.get(IDS)
    change(base)
    after = store.get(IDS)
    assert (after.states - before.states).abs().max() > 1e-3
    torch.testing.assert_close(after.states, compute_prefix(base, IDS).states)


def test_switching_an_adapter_off_is_a_change() -> None:
    from peft import LoraConfig, get_peft_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        wrapped = get_peft_model(
            TINY["llama"]()[0], LoraConfig(target_modules=["q_proj"], init_lora_weights=False)
        ).eval()
    store = PrefixStore(wrapped.base_model.model.base_model)
    on = store.get(IDS)
    with wrapped.disable_adapter():
        off = store.get(IDS)
    assert (on.states - off.states).abs().max() > 1e-4
    torch.testing.assert_close(store.get(IDS).states, on.states)


def test_a_prompt_that_a_training_read_with_16_bits_serves_the_training_alone() -> None:
    base = _base()
    store = PrefixStore(base)
    with half_precision("cpu", True):
        halved = store.get(IDS)
        assert store.get(IDS) is halved
    full = store.get(IDS)
    torch.testing.assert_close(full.states, compute_prefix(base, IDS).states)
    assert not torch.equal(full.states, halved.states)


def test_a_prompt_read_in_inference_mode_serves_gradients_later() -> None:
    base = _base()
    store = PrefixStore(base)
    with torch.inference_mode():
        store.get(IDS)
    embeds = base.embed_tokens(torch.tensor([[1, 2]])).detach().requires_grad_()
    cache = store.get(IDS).cache(1)
    states: Tensor = base(inputs_embeds=embeds, use_cache=True, **given_cache(base, cache)).last_hidden_state
    (gradient,) = torch.autograd.grad(states.sum(), embeds)
    assert gradient.abs().max() > 0
