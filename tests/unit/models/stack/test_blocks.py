"""Blocks of a model, adapters with some of them randomised, and the area that sums a curve up."""

import copy
import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AlbertConfig, AutoModelForSequenceClassification, BertConfig

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.hidden_states import HiddenStates
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.models.adapters.classifier import Classifier
from raison.models.derived.randomised import RandomisedModels, StateStore
from raison.models.stack.blocks import drawn_values, find_blocks, put, twin
from raison.models.stack.hooks import hooked
from raison.numerics.measures.randomisation import area
from tests.integration.test_lora import adapted
from tests.prompted import DAY
from tests.tiny import QUESTIONS, TEXTS, TINY, build_answering, build_language_model
from tests.unit.models.stack.test_tap_isolation import snapshot


def loaded(name: str) -> tuple[Classifier, list[object]]:
    """An adapter of one kind, and texts for it."""
    kind, _, family = name.partition(" ")
    if not family:
        return raison.load(*TINY[name]()), list(TEXTS[:2])
    if kind == "lora":
        return raison.load(*adapted(family, ["query", "value"], "classifier")), list(TEXTS[:2])
    if kind == "answers":
        return raison.load(*build_answering(family)), list(QUESTIONS[:2])
    found = raison.load(*build_language_model(family), prompt=DAY, calibrate=kind == "calibrated")
    return found, ["a quiet pleasure", "dull , and long"]


KINDS = (*sorted(set(TINY) - {"albert"}), "prompt gpt2", "calibrated llama", "answers bert", "lora bert")


def storages(module: nn.Module) -> dict[int, int]:
    """Bytes by place in memory, of all parameters and buffers."""
    tensors = [*module.parameters(), *module.buffers()]
    return {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}


@contextmanager
def counted(model: Classifier) -> Iterator[list[int]]:
    """How often each block is computed, from the first on: a block that gives what is stored does not run."""
    blocks = find_blocks(model.core)
    counts = [0] * len(blocks)
    # Something that every block calls once, whatever the family.
    inner = [next(m for m in block.modules() if any(True for _ in m.parameters(recurse=False))) for block in blocks]

    def add(module: nn.Module, *_: object) -> None:
        counts[[id(one) for one in inner].index(id(module))] += 1

    # No hook of the caller's: with one, no prompt's states would be stored.
    with hooked(inner, before=add):
        yield counts


def some_keeps(encoding: Encoding) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.rand(5, count, generator=generator) < 0.6 for count in encoding.unit_counts]


# Those that the next test leaves out, which copies blocks as well.
@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", [*KINDS[1:], KINDS[0]])
def test_the_model_stays_and_only_blocks_are_copied(name: str) -> None:
    model, texts = loaded(name)
    model.model.train()
    model.core.get_input_embeddings().weight.grad = torch.ones_like(model.core.get_input_embeddings().weight)
    encoding = model.encode(texts)
    before, state = snapshot(model.model), torch.get_rng_state()
    modes = [module.training for module in model.model.modules()]
    plain = model.ask(Passes).logits(encoding).detach()
    own = storages(model.model)
    models = RandomisedModels(model)
    total = models.count
    assert total == len(find_blocks(model.core)) >= 2
    for numbers in [(), (1,), (total,), tuple(range(1, total + 1))]:
        other = models.model(numbers)
        new = {place: size for place, size in storages(other.model).items() if place not in own}
        blocks = [find_blocks(model.core)[total - number] for number in numbers]
        expected = {id(p): p.numel() * p.element_size() for block in blocks for p in block.parameters()}
        assert sum(new.values()) == sum(expected.values())
        found = other.ask(Passes).logits(encoding).detach()
        assert torch.equal(found, plain) == (not numbers)
        keeps = some_keeps(encoding)
        other.masked_logits(encoding, keeps, other.removals[0])
        # In between, and with the other one still in use.
        assert snapshot(model.model) == before
        assert torch.equal(model.ask(Passes).logits(encoding).detach(), plain)
    assert [module.training for module in model.model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert model.core.get_input_embeddings().weight.grad.eq(1).all()
    assert all(not p.requires_grad or p.grad is None for block in find_blocks(model.core) for p in block.parameters())


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    ("name", "how"), [*((name, "initial") for name in KINDS), ("bert", "permuted"), ("prompt gpt2", "permuted")]
)
def test_as_a_copy_whose_blocks_were_overwritten(name: str, how: str) -> None:
    model, texts = loaded(name)
    encoding = model.encode(texts)
    models = RandomisedModels(model, how, (5,))
    total = models.count
    keeps, removal = some_keeps(encoding), model.removals[0]
    for numbers in [tuple(range(1, total + 1)), (2,), (1,), tuple(range(1, total))]:
        slow, _ = loaded(name)
        with torch.no_grad():
            for number in numbers:
                place = total - number
                block = find_blocks(model.core)[place]
                values = drawn_values(model.core, block, how, (5, place))
                for target, source in zip(find_blocks(slow.core)[place].parameters(), block.parameters(), strict=True):
                    target.copy_(values[id(source)])
        quick = models.model(numbers)
        with torch.no_grad():
            assert torch.equal(quick.ask(Passes).logits(encoding), slow.ask(Passes).logits(encoding))
        # Twice: the second time the lower blocks' work is known.
        for _ in range(2):
            found = quick.masked_logits(encoding, keeps, removal)
            wanted = slow.masked_logits(encoding, keeps, removal)
            assert all(torch.equal(*pair) for pair in zip(found, wanted, strict=True))


@pytest.mark.parametrize("name", ["bert", "gpt2", "prompt gpt2", "modernbert", "t5", "answers bert"])
def test_lower_blocks_run_once(name: str) -> None:
    model, texts = loaded(name)
    encoding, removal = model.encode(texts), model.removals[0]
    keeps = some_keeps(encoding)
    models = RandomisedModels(model)
    total, first = models.count, len(find_blocks(model.core))
    # The decoder's blocks read two things: of T5 only the encoder's work is known again.
    first = first // 2 if name == "t5" else first
    for blocks in [*range(total - 1, 0, -1), 1]:
        other = models.model(range(1, blocks + 1))
        # Counted from the first pass on, for a hook makes a prompt's states invalid.
        with counted(other) as counts:
            other.masked_logits(encoding, keeps, removal)
            counts[:] = [0] * total
            other.masked_logits(encoding, keeps, removal)
        lower = min(total - blocks, first)
        assert not any(counts[:lower]), f"{blocks} blocks randomised"
        assert all(counts[lower:])


@pytest.mark.parametrize(
    ("name", "second", "last"), [("answers bert", 1, 1), ("modernbert", 2, 5 + 3), ("bert", 2, 5 + 3)]
)
def test_a_block_goes_on_where_the_one_before_ended(name: str, second: int, last: int) -> None:
    """The last block is tried twice whole and once in parts, then called as the trial says (passes/last_row.py).

    Where the answer is a place of the text, every row is read and nothing is tried.
    """
    model, texts = loaded(name)
    encoding, removal = model.encode(texts), model.removals[0]
    keeps, models = some_keeps(encoding), RandomisedModels(model)
    models.model(range(1, 3)).masked_logits(encoding, keeps, removal)
    other = models.model(range(1, 2))
    with counted(other) as counts:
        other.masked_logits(encoding, keeps, removal)
    # Of the trial's passes all but the first find the second block's output known.
    assert counts == [0, second, last]


def test_passes_that_look_inside_are_whole() -> None:
    model, texts = loaded("bert")
    encoding = model.encode(texts)
    models = RandomisedModels(model)
    other, again = models.model(range(1, 2)), models.model(range(1, 2))
    with torch.no_grad():
        other.ask(Passes).logits(encoding)
        with counted(again) as counts, again.ask(ReadableAttention).tap() as seen:
            again.ask(Passes).logits(encoding)
        assert counts == [1, 1, 1]
        assert sorted(seen.probabilities) == [0, 1, 2]
    with counted(again) as counts:
        again.ask(Passes).logits(encoding)
    assert counts == [1, 1, 1]
    with counted(again) as counts:
        states = again.ask(HiddenStates).hidden_states(encoding)
    assert min(counts) > 0
    slow = RandomisedModels(model).model(range(1, 2)).ask(HiddenStates).hidden_states(encoding)
    assert all(torch.equal(*pair) for pair in zip(states, slow, strict=True))


def test_other_embeddings_are_other_inputs() -> None:
    model, texts = loaded("bert")
    encoding = model.encode(texts)
    models = RandomisedModels(model)
    other = models.model(range(1, 2))
    embeds = model.ask(WordEmbeddings).embed(encoding)
    with torch.no_grad():
        plain = other.ask(Passes).logits(encoding)
        moved = other.ask(Passes).logits(encoding, embeds.flip(-1))
        assert not torch.allclose(plain, moved, atol=1e-3)
        assert torch.equal(
            moved, RandomisedModels(model).model(range(1, 2)).ask(Passes).logits(encoding, embeds.flip(-1))
        )
        assert torch.equal(other.ask(Passes).logits(encoding), plain)


def test_the_store_is_bounded_and_keeps_the_first() -> None:
    store = StateStore(100)
    store.put(b"a", 1, torch.zeros(10))
    store.put(b"b", 1, (torch.zeros(15), None))
    store.put(b"c", 1, torch.zeros(1))
    assert store.size == 100
    assert store.get(b"c", 1) is None
    assert store.get(b"a", 0) is None, "a state above the block that is asked for is of no use"
    store.put(b"a", 2, torch.ones(10))
    found = store.get(b"a", 5)
    assert found is not None
    assert (found.level, float(found.output.sum()), store.size) == (2, 10.0, 100)
    store.put(b"a", 3, "something else")
    assert store.get(b"a", 5) is found
    store.clear()
    assert (store.size, store.get(b"a", 5)) == (0, None)


def test_a_full_store_changes_no_number() -> None:
    model, texts = loaded("bert")
    encoding, removal = model.encode(texts), model.removals[0]
    keeps = some_keeps(encoding)
    kept, none = RandomisedModels(model), RandomisedModels(model, stored=0)
    for blocks in (2, 1):
        found = kept.model(range(1, blocks + 1)).masked_logits(encoding, keeps, removal)
        other = none.model(range(1, blocks + 1)).masked_logits(encoding, keeps, removal)
        assert all(torch.equal(*pair) for pair in zip(found, other, strict=True))
    assert kept.store.size > 0
    assert none.store.size == 0


def test_initial_values_are_the_models_own_initialisation() -> None:
    model, _ = TINY["gpt2"]()
    block = find_blocks(model)[1]
    values = drawn_values(model, block, "initial", (0, 1))
    named = {name: values[id(parameter)] for name, parameter in block.named_parameters()}
    assert named["ln_1.weight"].eq(1).all()
    assert named["attn.c_attn.bias"].eq(0).all()
    assert float(named["attn.c_attn.weight"].detach().std()) == pytest.approx(0.02, rel=0.1)
    # GPT-2 draws what writes to the residual stream smaller: 0.02 / sqrt(2 layers).
    assert float(named["mlp.c_proj.weight"].detach().std()) == pytest.approx(0.02 / 6**0.5, rel=0.1)
    again = drawn_values(model, block, "initial", (0, 1))
    assert all(torch.equal(values[key], again[key]) for key in values)
    other = drawn_values(model, block, "initial", (1, 1))
    assert not torch.equal(other[id(block.mlp.c_fc.weight)], values[id(block.mlp.c_fc.weight)])


def test_permuted_values_keep_their_distribution() -> None:
    model, _ = TINY["bert"]()
    block = find_blocks(model)[0]
    values = drawn_values(model, block, "permuted", (0, 0))
    for name, parameter in block.named_parameters():
        assert torch.equal(values[id(parameter)].flatten().sort()[0], parameter.flatten().sort()[0]), name
        assert not torch.equal(values[id(parameter)], parameter), name


def test_a_block_has_the_same_values_in_both_orders() -> None:
    model, _ = loaded("bert")
    models, others = RandomisedModels(model), RandomisedModels(model)
    one = find_blocks(models.model(range(1, 4)).core)[1]
    two = find_blocks(others.model((2,)).core)[1]
    assert all(torch.equal(*pair) for pair in zip(one.parameters(), two.parameters(), strict=True))
    models.drop_copies()
    three = find_blocks(models.model((2,)).core)[1]
    assert all(torch.equal(*pair) for pair in zip(one.parameters(), three.parameters(), strict=True))


def test_half_precision_and_frozen_parameters_stay_so() -> None:
    model, tokenizer = TINY["bert"]()
    model.to(torch.bfloat16).requires_grad_(False)
    other = RandomisedModels(raison.load(model, tokenizer)).model(range(1, 3))
    assert {p.dtype for p in other.core.parameters()} == {torch.bfloat16}
    assert not any(p.requires_grad for p in other.core.parameters())


def test_a_twin_is_freed_with_its_last_name() -> None:
    model, texts = loaded("bert")
    models = RandomisedModels(model)
    other = models.model((1,))
    other.masked_logits(encoding := model.encode(texts), some_keeps(encoding), other.removals[0])
    freed = weakref.ref(other.model)
    del models, other
    gc.collect()
    assert freed() is None


def test_a_twin_keeps_to_itself() -> None:
    model, tokenizer = TINY["bert"]()
    inputs = tokenizer(TEXTS[0], return_tensors="pt")
    model.eval()
    plain = model(**inputs).logits
    twins: dict[int, nn.Module] = {}
    own = twin(model, twins)
    own.train()
    own.config.num_labels = 7
    handle = own.get_input_embeddings().register_forward_hook(lambda _m, _i, output: output * 0)
    put(own, {id(model.classifier.bias): nn.Parameter(torch.zeros(3))})
    assert not any(module.training for module in model.modules())
    assert model.config.num_labels == 3
    assert torch.equal(model(**inputs).logits, plain)
    assert own.config is own.base_model.config
    handle.remove()
    assert torch.allclose(own.eval()(**inputs).logits + model.classifier.bias, plain, atol=1e-5)


def test_blocks_that_cannot_be_told_apart() -> None:
    config = AlbertConfig(
        vocab_size=30,
        embedding_size=8,
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=16,
        num_hidden_layers=3,
    )
    with torch.random.fork_rng(devices=[]):
        albert = AutoModelForSequenceClassification.from_config(config)
        flat = AutoModelForSequenceClassification.from_config(
            BertConfig(vocab_size=30, hidden_size=8, num_attention_heads=2, intermediate_size=8, num_hidden_layers=2)
        )
    with pytest.raises(UnsupportedError, match="no separate blocks: its layers share parameters"):
        find_blocks(albert)
    flat.bert.encoder.layer[1].intermediate = flat.bert.encoder.layer[0].intermediate
    with pytest.raises(UnsupportedError, match="share parameters"):
        find_blocks(flat)
    flat.bert.encoder.layer = nn.Sequential(*copy.deepcopy(list(flat.bert.encoder.layer)))
    with pytest.raises(UnsupportedError, match="not one list of modules of the same type"):
        find_blocks(flat)


def test_what_cannot_be_drawn_or_shared() -> None:
    model, tokenizer = TINY["bert"]()
    adapter = raison.load(model, tokenizer)
    with pytest.raises(UnknownNameError, match="Did you mean 'permuted'"):
        RandomisedModels(adapter, "permute")  # type: ignore[arg-type]
    models = RandomisedModels(adapter)
    with pytest.raises(InputError, match="block 4 does not exist: blocks are numbered from 1"):
        models.model(range(1, 5))
    block = find_blocks(model)[2]
    block.odd = nn.Parameter(torch.zeros(3))
    with pytest.raises(UnsupportedError, match="leaves out the parameter odd. Use how='permuted'"):
        models.model((1,))
    block.odd = nn.Parameter(torch.zeros(3, dtype=torch.int8), requires_grad=False)
    with pytest.raises(UnsupportedError, match="parameter odd is quantised"):
        models.model((1,))
    model.classifier.forward = model.classifier.forward
    with pytest.raises(UnsupportedError, match="its forward function was replaced"):
        models.model((2,))


def test_area_of_a_curve() -> None:
    # From 1 at no block: trapezoids over thirds.
    assert area(np.array([0.5, 0.2, -0.1]), "cascading") == pytest.approx((0.75 + 0.35 + 0.05) / 3)
    assert area(np.array([0.5, 0.2, -0.1]), "independent") == pytest.approx(0.2)
    for order in ("cascading", "independent"):
        assert area(np.ones(4), order) == pytest.approx(1)
        assert np.isnan(area(np.array([0.5, np.nan]), order))
        with pytest.raises(InputError, match="at least one block"):
            area(np.array([]), order)
    with pytest.raises(UnknownNameError, match="Did you mean 'cascading'"):
        area(np.ones(2), "cascade")
