"""What takes the place of a masked token, for soft masks."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertForMaskedLM, PreTrainedTokenizerFast, RobertaForMaskedLM

import raison
from raison.core.errors import InputError, LoadError, UnknownNameError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.masking.substitutes import Substitutes, masking_name
from raison.methods.aml import Aml
from raison.models.adapters.classifier import Classifier
from raison.models.derived.masked_lm import FillIn
from tests.explainers import untrained
from tests.tiny import build
from tests.tokenizers import TOKENIZERS
from tests.toys import generators

TEXTS = ["a dull plot, but the ending is good", "It was brilliant.", "dull"]


def loaded(name: str, **changed: str | None) -> Classifier:
    """A tiny model, some of whose tokenizer's special tokens are others."""
    model, tokenizer = build(name)
    for role, token in changed.items():
        setattr(tokenizer, role, token)
    adapter = raison.load(model, tokenizer)
    assert isinstance(adapter, Classifier)
    return adapter


def table(adapter: Classifier) -> torch.Tensor:
    return adapter.model.get_input_embeddings().weight.detach()


def ids_of(adapter: Classifier, embeds: torch.Tensor) -> torch.Tensor:
    """Which tokens the embeddings are of."""
    same = (embeds[:, :, None] == table(adapter)).all(-1)
    assert (same.sum(-1) == 1).all()
    return same.long().argmax(-1)


@pytest.mark.parametrize(
    ("name", "changed", "usual"),
    [
        ("bert", {}, "mask"),
        ("roberta", {}, "mask"),
        ("t5", {}, "unk"),
        ("llama", {}, "unk"),
        ("bert", {"mask_token": None}, "unk"),
    ],
)
def test_the_mask_token_comes_first_and_then_the_unknown_one(name, changed, usual):
    adapter = loaded(name, **changed)
    assert masking_name(adapter, None) == usual
    assert Substitutes.of(adapter, usual, None).masking == usual


def test_three_dots_come_before_the_unknown_token():
    adapter = loaded("bert")
    adapter.removals = ("unk", "pad", "ellipsis", "delete")
    assert masking_name(adapter, None) == "ellipsis"


def test_without_a_mask_and_an_unknown_token_the_choices_are_named():
    adapter = loaded("gpt2", unk_token=None)
    adapter.removals = tuple(name for name in adapter.removals if name not in ("ellipsis", "unk"))
    with pytest.raises(UnsupportedError) as caught:
        masking_name(adapter, None)
    said = str(caught.value)
    assert "has no token to mask with: its tokenizer has no mask token, none for three dots and no unknown" in said
    assert "--masking random or learned or pad" in said
    assert "\n" not in said
    for way_out in ("random", "learned", "pad"):
        assert masking_name(adapter, way_out) == way_out


def test_a_token_that_the_tokenizer_lacks_is_refused():
    with pytest.raises(UnsupportedError, match="masking 'mask' is not possible: the tokenizer has no mask token. Use "):
        masking_name(loaded("llama"), "mask")


def test_an_unknown_name_has_a_suggestion():
    with pytest.raises(UnknownNameError, match="unknown masking 'lerned'. Did you mean 'learned'"):
        masking_name(loaded("bert"), "lerned")


@pytest.mark.parametrize(("masking", "token"), [("mask", "[MASK]"), ("unk", "[UNK]"), ("pad", "[PAD]")])
def test_a_designated_token_stands_in_for_every_unit_s(masking, token):
    adapter = loaded("bert")
    encoding = adapter.encode(TEXTS, "word")
    found = Substitutes.of(adapter, masking, None).embeddings(adapter, encoding, generators(3))
    expected = encoding.input_ids.masked_fill(encoding.scored, adapter.tokenizer.convert_tokens_to_ids(token))
    assert torch.equal(found, table(adapter)[expected])
    assert not found.requires_grad


def test_random_tokens_are_those_of_the_text_and_special_ones_stay():
    adapter = loaded("roberta")
    encoding = adapter.encode(TEXTS, "word")
    substitutes = Substitutes.of(adapter, "random", None)
    found = ids_of(adapter, substitutes.embeddings(adapter, encoding, generators(3)))
    assert torch.equal(found[~encoding.scored], encoding.input_ids[~encoding.scored])
    for row in range(3):
        own = encoding.scored[row]
        assert set(found[row, own].tolist()) <= set(encoding.input_ids[row, own].tolist())
    assert not torch.equal(found, encoding.input_ids)
    again = ids_of(adapter, substitutes.embeddings(adapter, encoding, generators(3)))
    other = ids_of(adapter, substitutes.embeddings(adapter, encoding, generators(3, seed=1)))
    assert torch.equal(found, again)
    assert not torch.equal(found, other)
    alone = ids_of(adapter, substitutes.embeddings(adapter, encoding.select([1]), [generators(3)[1]]))
    assert torch.equal(alone[0], found[1, : alone.shape[1]])


def test_every_token_of_the_text_is_drawn_in_its_share():
    adapter = loaded("bert")
    encoding = adapter.encode(["the dull plot"], "token")
    own = encoding.scored[0]
    rng = np.random.default_rng(0)
    drawn = torch.cat(
        [ids_of(adapter, Substitutes("random").embeddings(adapter, encoding, [rng]))[0, own] for _ in range(100)]
    )
    pool = encoding.input_ids[0, own].tolist()
    for token in set(pool):
        share = pool.count(token) / len(pool)
        error = (share * (1 - share) / len(drawn)) ** 0.5
        assert abs((drawn == token).float().mean().item() - share) < 5 * error


def masked_language_model(folder: Path, name: str = "bert", **changed: str | None) -> str:
    """A tiny random one with the tiny model's tokenizer."""
    model, tokenizer = build(name)
    for role, token in changed.items():
        setattr(tokenizer, role, token)
    kind = {"bert": BertForMaskedLM, "roberta": RobertaForMaskedLM}[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        language_model = kind(copy.deepcopy(model.config))
    # The tiny model's weights: predictions differ from place to place. Special tokens would be the likeliest of all.
    language_model.base_model.load_state_dict(model.base_model.state_dict(), strict=False)
    # A mask token that says nothing leaves the word to its place and to the others.
    language_model.get_input_embeddings().weight.data[build(name)[1].mask_token_id] = 0.0
    language_model.get_output_embeddings().bias.data[tokenizer.all_special_ids] = 50.0
    language_model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def literal_fill(folder: str, tokenizer: PreTrainedTokenizerFast, encoding: Encoding, name: str) -> torch.Tensor:
    """One place of one text at a time."""
    kind = {"bert": BertForMaskedLM, "roberta": RobertaForMaskedLM}[name]
    model = kind.from_pretrained(folder).eval()
    filled = encoding.input_ids.clone()
    for row, length in enumerate(encoding.lengths):
        for place in range(length):
            if encoding.unit_ids[row, place] < 0:
                continue
            ids = encoding.input_ids[row, :length].clone()
            ids[place] = tokenizer.mask_token_id
            with torch.no_grad():
                ranked = model(input_ids=ids[None]).logits[0, place].argsort(descending=True).tolist()
            barred = {*tokenizer.all_special_ids, int(encoding.input_ids[row, place])}
            filled[row, place] = next(token for token in ranked if token not in barred)
    return filled


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_predicted_tokens_are_the_likeliest_other_ones(name, tmp_path):
    adapter = loaded(name)
    folder = masked_language_model(tmp_path, name)
    encoding = adapter.encode(TEXTS, "word")
    substitutes = Substitutes.of(adapter, "predicted", folder)
    random_state = torch.get_rng_state()
    filled = substitutes.filler.fill(encoding)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert torch.equal(filled, literal_fill(folder, adapter.tokenizer, encoding, name))
    assert torch.equal(filled[~encoding.scored], encoding.input_ids[~encoding.scored])
    changed = filled[encoding.scored]
    assert (changed != encoding.input_ids[encoding.scored]).all()
    assert not set(changed.tolist()) & set(adapter.tokenizer.all_special_ids)
    assert len(set(changed.tolist())) > 2, "a model that ignores the context would pass"
    assert torch.equal(substitutes.embeddings(adapter, encoding, generators(3)), table(adapter)[filled])


def test_another_vocabulary_is_refused(tmp_path):
    folder = masked_language_model(tmp_path / "cased")
    with pytest.raises(InputError, match="'cased' has another vocabulary than the explained model: its tokens could"):
        FillIn(folder, TOKENIZERS["roberta"]())


def test_a_filler_without_a_mask_token_is_refused(tmp_path):
    folder = masked_language_model(tmp_path, mask_token=None)
    with pytest.raises(InputError, match="Use one with the same tokenizer, or another masking"):
        FillIn(folder, build("bert")[1])


def test_predicted_needs_a_filler_that_can_be_loaded(tmp_path):
    adapter = loaded("bert")
    with pytest.raises(InputError, match="needs a masked language model with the explained model's tokenizer: --fill"):
        Substitutes.of(adapter, "predicted", None)
    with pytest.raises(LoadError, match="cannot load the masked language model") as caught:
        Substitutes.of(adapter, "predicted", str(tmp_path / "nowhere"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("masking", ["unk", "pad", "random", "predicted", "learned"])
def test_texts_can_be_tuned_on_under_every_masking(masking, tmp_path):
    """The maps differ from those under the mask token: the choice counts."""
    adapter = loaded("bert")
    filler = masked_language_model(tmp_path / "filler") if masking == "predicted" else None
    untrained(adapter, tmp_path / "plain")
    untrained(adapter, tmp_path / "other", masking=masking, filler=filler)
    plain, other = (
        raison.explain(adapter, TEXTS[0], Aml(str(tmp_path / folder), steps=3)).scores for folder in ("plain", "other")
    )
    assert np.abs(np.array(plain) - np.array(other)).max() > 1e-6
    if masking != "learned":
        # Without steps nothing is masked, and the two have the same weights.
        plain, other = (
            raison.explain(adapter, TEXTS[0], Aml(str(tmp_path / folder))).scores for folder in ("plain", "other")
        )
        assert plain == other
