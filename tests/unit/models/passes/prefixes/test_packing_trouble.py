"""Packed passes that go wrong are noticed, and plain ones take their place."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from raison.models.passes.batching import TokenBudget
from raison.models.passes.prefixes.packing import PackedReader
from tests.packs import BASES, bloom, check


def _wrong_when(base: PreTrainedModel, condition: Callable[[Tensor], bool]) -> None:
    """The first layer ignores its mask in the passes that the condition picks."""

    def break_mask(_module: nn.Module, _args: object, kwargs: dict[str, object]) -> object:
        mask = kwargs["attention_mask"]
        if isinstance(mask, Tensor) and mask.is_floating_point() and condition(mask):
            kwargs["attention_mask"] = torch.zeros_like(mask)
        return None

    base.layers[0].register_forward_pre_hook(break_mask, with_kwargs=True)


def test_a_wrong_packed_pass_is_noticed_at_once() -> None:
    base = BASES["llama"]()
    _wrong_when(base, lambda _mask: True)
    reader = PackedReader(base, TokenBudget(2048))
    assert not reader.packs
    check(base, reader, 4, 0)


def test_a_packed_pass_that_is_wrong_only_when_long_is_noticed_then() -> None:
    base = BASES["llama"]()
    _wrong_when(base, lambda mask: mask.shape[-1] > 50)
    reader = PackedReader(base, TokenBudget(2048))
    assert reader.packs
    check(base, reader, 30, 0)
    assert not reader.packs


def test_a_window_longer_than_the_trial_is_respected() -> None:
    base = BASES["mistral"]()
    base.config.sliding_window = 40
    reader = PackedReader(base, TokenBudget(2048))
    check(base, reader, 2, 0)
    check(base, reader, 38, 0)
    assert reader.packs


@pytest.mark.parametrize("keys", [0, 50])
def test_a_packed_pass_that_raises_falls_back(keys: int) -> None:
    base = BASES["llama"]()

    def refuse(_module: nn.Module, _args: object, kwargs: dict[str, Tensor]) -> None:
        if (
            "attention_mask" in kwargs
            and kwargs["attention_mask"].dim() == 4
            and kwargs["attention_mask"].shape[3] > keys
        ):
            raise ValueError

    base.register_forward_pre_hook(refuse, with_kwargs=True)
    reader = PackedReader(base, TokenBudget(2048))
    assert reader.packs == (keys > 0)
    check(base, reader, 30, 0)
    assert not reader.packs


@pytest.mark.parametrize("name", ["llama", "bloom"])
def test_out_of_memory_halves_the_budget(name: str) -> None:
    base = bloom() if name == "bloom" else BASES[name]()
    budget = TokenBudget(200)
    reader = PackedReader(base, budget)
    assert reader.packs == (name == "llama")
    check(base, reader, 4, 0)

    def small(_module: nn.Module, args: tuple[Tensor], _output: Tensor) -> None:
        if args[0].numel() > 60:
            raise torch.OutOfMemoryError

    base.get_input_embeddings().register_forward_hook(small)
    check(base, reader, 4, 4)
    assert budget.tokens < 200
