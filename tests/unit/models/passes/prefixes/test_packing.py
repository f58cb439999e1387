"""Packed passes: equal to each sequence run alone, one token per distinct beginning, and never wrong in silence."""

import copy
from itertools import product

import pytest
import torch
from transformers import AutoModel, LlamaConfig

from raison.core.errors import InputError
from raison.models.loading.ready_made import base_weights
from raison.models.passes.batching import TokenBudget
from raison.models.passes.prefixes import packing
from raison.models.passes.prefixes.packing import PackedReader
from raison.models.stack.caches import given_cache
from tests.packs import BASES, alone, bloom, check, counted, forget_prompts, seeded, sequences


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("prefix", [0, 1, 9])
def test_equal_to_each_sequence_alone(name: str, prefix: int) -> None:
    base = BASES[name]()
    reader = PackedReader(base, TokenBudget(2048))
    for seed in range(2):
        check(base, reader, prefix, seed)
    assert reader.packs


@pytest.mark.parametrize("name", BASES)
def test_a_text_whose_every_token_is_removed_does_not_stop_packing(name: str) -> None:
    """Without a first token of its own, and with rotary positions, its states are all the same but for rounding."""
    base = BASES[name]()
    reader = PackedReader(base, TokenBudget(2048))
    text = torch.arange(20, 28)
    rows = [text.where(torch.tensor(kept).repeat_interleave(2), 5) for kept in product((False, True), repeat=4)]
    found = reader.states(torch.zeros(0, dtype=torch.long), rows, [[len(row) - 1] for row in rows])
    assert reader.packs
    for states, row in zip(found, rows, strict=True):
        torch.testing.assert_close(states, alone(base, row[:0], row)[-1:], atol=2e-5, rtol=2e-5)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", ["gpt2", "mistral"])
@pytest.mark.parametrize("nodes", [1, 7, 20])
def test_small_packs(name: str, nodes: int) -> None:
    base = BASES[name]()
    reader = PackedReader(base, TokenBudget(nodes))
    check(base, reader, 5, 3)
    assert reader.packs
    with counted(base) as sizes:
        check(base, reader, 5, 3)
    packs = sizes[1 : -len(sequences(3, 5)[1])]
    assert len(packs) > 1
    assert max(packs) <= max(nodes, 14)


@pytest.mark.parametrize("name", ["llama", "qwen3_mix"])
def test_eager_attention_takes_the_same_mask(name: str) -> None:
    base = BASES[name]()
    base.set_attn_implementation("eager")
    reader = PackedReader(base, TokenBudget(2048))
    check(base, reader, 4, 0)
    assert reader.packs


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_packs(dtype: torch.dtype) -> None:
    base = BASES["llama"]().to(dtype)
    reader = PackedReader(base, TokenBudget(2048))
    head, rows, reads = sequences(0, 4)
    found = reader.states(head, rows, reads)
    assert reader.packs
    for states, row, wanted in zip(found, rows, reads, strict=True):
        assert states.dtype == dtype
        torch.testing.assert_close(states, alone(base, head, row)[wanted], atol=0.15, rtol=0.05)


def test_runs_one_token_per_distinct_beginning() -> None:
    base = BASES["llama"]()
    reader = PackedReader(base, TokenBudget(2048))
    head, rows, reads = sequences(1, 6)
    with counted(base) as sizes:
        # First the trial, and a comparison for each size of packs: they leave nothing behind but the verdict.
        reader.states(head, rows, reads)
        reader.states(head, rows[:4], reads[:4])
        forget_prompts(base)
        sizes.clear()
        reader.states(head, rows, reads)
        reader.states(head, rows[:4], reads[:4])
    beginnings = {tuple(row.tolist()[:end]) for row in rows for end in range(1, len(row) + 1)}
    few = {tuple(row.tolist()[:end]) for row in rows[:4] for end in range(1, len(row) + 1)}
    assert sizes == [6, len(beginnings), len(few)]


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("prefix", [0, 6])
@pytest.mark.parametrize("nodes", [3, 25])
def test_several_packs_run_no_beginning_twice(name: str, prefix: int, nodes: int) -> None:
    """As where each of ten sources is left out: what comes before it is that of the pack before."""
    base = BASES[name]()
    reader = PackedReader(base, TokenBudget(nodes))
    head, whole = torch.arange(prefix), torch.arange(20, 60)
    rows = [torch.cat([whole[:start], whole[start + 4 :]]) for start in range(0, 40, 4)]
    reads = [[prefix + len(row) - 1, prefix + 2] for row in rows]
    reader.states(head, rows, reads)
    forget_prompts(base)
    with counted(base) as sizes:
        found = reader.states(head, rows, reads)
    assert reader.packs
    beginnings = {tuple(row.tolist()[:end]) for row in rows for end in range(1, len(row) + 1)}
    assert len(sizes) > 4
    assert sum(sizes) == prefix + len(beginnings) < 0.65 * sum(map(len, rows)) + prefix
    for states, row, wanted in zip(found, rows, reads, strict=True):
        torch.testing.assert_close(states, alone(base, head, row)[wanted], atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("name", ["llama", "qwen3_mix"])
def test_in_double_precision_nothing_but_rounding_is_left(name: str) -> None:
    """What single precision leaves is its own rounding, not an approximation."""
    base = BASES[name]().double()
    reader = PackedReader(base, TokenBudget(7))
    head, rows, reads = sequences(2, 5)
    found = reader.states(head, rows, reads)
    assert reader.packs
    for states, row, wanted in zip(found, rows, reads, strict=True):
        torch.testing.assert_close(states, alone(base, head, row)[wanted], atol=1e-12, rtol=1e-12)


def test_a_row_longer_than_a_pack_is_run_once_with_its_beginnings() -> None:
    base = BASES["llama"]()
    reader = PackedReader(base, TokenBudget(5))
    row = torch.arange(20, 40)
    rows = [row[:end] for end in range(12, 21)]
    wanted = alone(base, row[:0], row)
    reader.states(row[:0], rows, [[len(own) - 1] for own in rows])
    with counted(base) as sizes:
        found = reader.states(row[:0], rows, [[len(own) - 1] for own in rows])
    assert sizes == [20]
    torch.testing.assert_close(torch.cat(found), wanted[11:], atol=2e-5, rtol=2e-5)


def test_the_prompt_alone_costs_no_second_pass() -> None:
    base = BASES["gpt2"]()
    reader = PackedReader(base, TokenBudget(2048))
    head, empty = torch.arange(7), torch.zeros(0, dtype=torch.long)
    with counted(base) as sizes:
        reader.states(head, [empty], [[6]])
        sizes.clear()
        (states,) = reader.states(head, [empty], [[6, 0]])
    assert sizes == []
    torch.testing.assert_close(states, alone(base, head, empty)[[6, 0]], atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("read", [-1, 5])
def test_a_position_that_does_not_exist(read: int) -> None:
    with pytest.raises(InputError, match="5 tokens"):
        PackedReader(BASES["gpt2"](), TokenBudget(64)).states(torch.arange(3), [torch.arange(2)], [[read]])


def test_linear_bias_families_are_run_plain() -> None:
    """BLOOM makes its position bias from the two-dimensional mask."""
    base = bloom()
    reader = PackedReader(base, TokenBudget(60))
    assert not reader.packs
    check(base, reader, 5, 0)
    assert reader.cache(torch.arange(4), 2) is None


def test_unknown_attention_is_run_plain() -> None:
    base = BASES["llama"]()
    reader = PackedReader(base, TokenBudget(2048))
    base.config._attn_implementation_internal = "flash_attention_2"
    assert not reader.packs
    base.config._attn_implementation_internal = "sdpa"
    assert reader.packs


@pytest.mark.parametrize("name", ["llama", "mistral", "gpt2"])
def test_cache_for_a_differentiable_pass(name: str) -> None:
    base = BASES[name]()
    reader = PackedReader(base, TokenBudget(2048))
    head = torch.arange(6)
    rows = torch.tensor([[9, 8, 7], [5, 6, 7]])
    for _ in range(2):
        cache = reader.cache(head, 2)
        assert cache is not None
        assert cache.get_seq_length() == 6
        embeds = base.get_input_embeddings()(rows).detach().requires_grad_()
        states = base(
            inputs_embeds=embeds,
            attention_mask=torch.ones(2, 9, dtype=torch.long),
            use_cache=True,
            **given_cache(base, cache),
        ).last_hidden_state
        assert cache.get_seq_length() == 9
        for states_of_row, row in zip(states, rows, strict=True):
            torch.testing.assert_close(states_of_row, alone(base, head, row)[6:], atol=2e-5, rtol=2e-5)
        (gradient,) = torch.autograd.grad(states.sum(), embeds)
        assert gradient.abs().sum(-1).min() > 0
    assert reader.cache(head[:0], 2) is None


def test_rotary_angles_that_depend_on_the_longest_sequence() -> None:
    """Past the trained length, all of a pass gets other angles: short sequences must not share one with long ones."""
    rope = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 4, "long_factor": [4.0] * 4}
    config = LlamaConfig(
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=64,
        num_hidden_layers=2,
        vocab_size=64,
        max_position_embeddings=128,
        rope_parameters=rope | {"original_max_position_embeddings": 30, "factor": 4.0},
    )
    base = seeded(lambda: AutoModel.from_config(config))
    reader = PackedReader(base, TokenBudget(2048))
    for prefix in (0, 24, 33):
        check(base, reader, prefix, 0)
    assert reader.packs
    assert reader.cache(torch.arange(5), 1) is None


def test_a_changed_model_and_an_uncached_context() -> None:
    base = BASES["llama"]()
    reader = PackedReader(base, TokenBudget(2048))
    check(base, reader, 6, 0)
    base.layers[0].mlp.up_proj.weight.data.mul_(-1)
    check(base, reader, 6, 0)
    head, rows, reads = sequences(0, 6)
    with counted(base) as sizes:
        reader.states(head, rows, reads)
        with reader.uncached():
            reader.states(head, rows, reads)
        reader.states(head, rows, reads)
    assert [size == 6 for size in sizes] == [False, True, False, False]


def test_the_model_is_left_alone() -> None:
    base = BASES["mistral"]()
    before = copy.deepcopy(base)
    reader = PackedReader(base, TokenBudget(50))
    check(base, reader, 5, 0)
    assert base.config.to_dict() == before.config.to_dict()
    assert base.config._attn_implementation == before.config._attn_implementation
    for one, other in zip(base.parameters(), before.parameters(), strict=True):
        assert torch.equal(one, other)
        assert one.grad is None
        assert one.requires_grad
    assert not any(module._forward_hooks or module._forward_pre_hooks or module.training for module in base.modules())


@pytest.mark.thorough
@pytest.mark.demo
def test_smollm2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grouped-query attention with real weights: label logits after packs of 20 nodes equal full re-runs."""
    from transformers import AutoModelForCausalLM

    monkeypatch.setattr(packing, "CPU_NODES", 20)
    model = AutoModelForCausalLM.from_pretrained(base_weights.fetch("smollm2"), dtype=torch.float32).eval()
    base = model.base_model
    reader = PackedReader(base, TokenBudget(2048))
    generator = torch.Generator().manual_seed(0)
    head = torch.randint(100, 40000, (12,), generator=generator)
    text = torch.randint(100, 40000, (5,), generator=generator)
    rows = [torch.where(torch.rand(5, generator=generator) < 0.5, text, 2) for _ in range(8)]
    found = reader.states(head, rows, [[16]] * 8)
    assert reader.packs
    labels = model.lm_head.weight[[2430, 3260]]
    wanted = torch.cat([alone(base, head, row)[16:] for row in rows])
    assert (torch.cat(found) @ labels.T - wanted @ labels.T).abs().max() < 1e-3
    assert (wanted @ labels.T).std(0).min() > 0.1
