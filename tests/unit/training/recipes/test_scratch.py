"""Small tokenizers and models: always the same, and of the kind that they are called."""

import math
from collections import Counter

import pytest
import torch

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.models.loading.load import load
from raison.models.loading.scratch import ARCHITECTURES, Size, scratch_model, scratch_tokenizer
from raison.models.tokens.small_vocabulary import choose_pieces
from raison.training.loop.batches import TokenBatches, tokenize
from raison.training.recipes.scratch import MaskedBatches

TEXTS = [
    "the old sailor told a modest story about the sea",
    ("a quiet film", "nobody believed the sailor"),
    "a wonderful film about the quiet sea, told twice",
] * 3
SIZE = Size(layers=2, width=16, heads=2, vocabulary=330, positions=40)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_same_texts_give_the_same_tokens(architecture: str) -> None:
    first, second = (scratch_tokenizer(architecture, TEXTS, SIZE) for _ in range(2))
    assert first.get_vocab() == second.get_vocab()
    assert len(first) <= SIZE.vocabulary
    (sailor,) = first(" sailor", add_special_tokens=False).input_ids[-1:]
    assert "sailor" in first.convert_ids_to_tokens(sailor), "a word that occurs twice is one token"
    unknown = first("unheard of: xylophones!").input_ids
    assert len(first.decode(unknown)) >= 2
    assert first.mask_token_id not in unknown
    assert len(set(first.all_special_ids)) == len(first.all_special_ids)
    assert first.pad_token_id != first.mask_token_id


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_small_model_has_its_size(architecture: str) -> None:
    tokenizer = scratch_tokenizer(architecture, TEXTS, SIZE)
    before = torch.get_rng_state()
    models = [scratch_model(architecture, SIZE, tokenizer, ("no", "yes"), seed) for seed in (0, 0, 1)]
    assert torch.equal(torch.get_rng_state(), before)
    states = [torch.cat([value.flatten() for value in model.state_dict().values()]) for model in models]
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])
    adapter = load(models[0], tokenizer)
    assert adapter.classes == ("no", "yes")
    # A causal model's mask token is there for who asks for it.
    assert "mask" in adapter.removals
    assert (adapter.removals[0] == "mask") is (architecture != "gpt2")
    assert adapter.max_tokens == 40
    encoding = adapter.encode(["the quiet sea"], "word")
    with adapter.ask(ReadableAttention).tap() as tapped:
        adapter.ask(Passes).logits(encoding)
    assert len(tapped.probabilities) == 2
    assert tapped.probabilities[0].shape[1] == 2
    assert adapter.ask(WordEmbeddings).embed(encoding).shape[-1] == 16
    adapter.encode(["sea " * 30], "word")


def test_words_come_first_then_characters_then_pieces() -> None:
    words = Counter({"sea": 5, "see": 3, "seaside": 1, "lee": 1})
    chosen = dict(choose_pieces(words, "##", 16))
    assert list(chosen)[:2] == ["sea", "see"]
    singles = {"s", "##e", "##a", "l"}
    assert len(singles & set(chosen)) >= 3
    assert "lee" in chosen or "seaside" in chosen or any(len(piece.removeprefix("##")) > 1 for piece in chosen)
    assert len(chosen) == 16
    assert sum(math.exp(share) for share in chosen.values()) == pytest.approx(1)
    assert chosen["sea"] > chosen["see"]


def test_no_more_pieces_than_there_is_room() -> None:
    words = Counter({f"word{number}": 2 for number in range(100)})
    for room in (4, 20, 50):
        assert len(choose_pieces(words, "", room)) <= room


def batches_of(share: float) -> MaskedBatches:
    tokenizer = scratch_tokenizer("bert", TEXTS, SIZE)
    tokens = tokenize(tokenizer, TEXTS * 20, 40)
    return MaskedBatches(TokenBatches(tokens, (0,) * len(tokens), tokenizer, 8, 3), share, tokenizer.mask_token_id)


def test_part_of_some_texts_is_masked_anew_in_each_epoch() -> None:
    masked = batches_of(0.5)
    plain = masked.batches
    special = torch.tensor(plain.tokenizer.all_special_ids)
    touched, rows = 0, 0
    for shown, own in zip(masked.epoch(0), plain.epoch(0), strict=True):
        ids, before = shown.inputs["input_ids"], own.inputs["input_ids"]
        changed = ids != before
        assert (ids[changed] == masked.token).all()
        assert not torch.isin(before[changed], special).any()
        touched, rows = touched + int(changed.any(1).sum()), rows + len(ids)
    assert rows == len(plain.tokens)
    # Half of the rows are chosen, and few of these escape: nine tokens, a level drawn evenly.
    assert 0.3 < touched / rows < 0.6
    first, again, later = (next(masked.epoch(number)).inputs["input_ids"] for number in (0, 0, 1))
    assert torch.equal(first, again)
    assert first.shape != later.shape or not torch.equal(first, later)
    third = list(masked.epoch(0))[2].inputs["input_ids"]
    assert torch.equal(third, next(masked.epoch(0, 2)).inputs["input_ids"]), "a resumed run sees the same"


def test_a_share_of_none_masks_nothing() -> None:
    masked = batches_of(0.0)
    for shown, own in zip(masked.epoch(0), masked.batches.epoch(0), strict=True):
        assert torch.equal(shown.inputs["input_ids"], own.inputs["input_ids"])
