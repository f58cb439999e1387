"""Names of special tokens in a text: read as they are written, and said so."""

import pytest
from transformers import AutoModelForMaskedLM

import raison
from raison.core.inputs.special_names import caution_of_names, noted
from raison.core.note_names import READ_AS_TEXT
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.report.style.phrases import cautions
from tests.tiny import TINY, build_at_places, build_language_model


def test_names_are_found_in_both_texts_of_a_pair() -> None:
    names = {"[SEP]", "[MASK]", "<s>"}
    assert noted(("a [SEP] b", "c [MASK]"), names) == {READ_AS_TEXT: ["[MASK]", "[SEP]"]}
    assert noted("a sep b", names) == {}


@pytest.mark.parametrize(("value", "said"), [(["[SEP]"], True), ([], False), ("[SEP]", False), ([3], False)])
def test_only_a_readable_note_is_said(value: object, said: bool) -> None:
    assert (caution_of_names({READ_AS_TEXT: value}) is not None) is said


def test_an_explanation_says_what_the_model_read() -> None:
    model, tokenizer = TINY["bert"]()
    loaded = raison.load(model, tokenizer)
    plain, named = (raison.explain(loaded, text, "occlusion") for text in ("a dull plot", "a dull [SEP] plot"))
    assert isinstance(plain, Explanation)
    assert isinstance(named, Explanation)
    assert READ_AS_TEXT not in plain.notes
    assert named.notes[READ_AS_TEXT] == ["[SEP]"]
    assert "[SEP] in the text is read as it is written, and not as a special token" in cautions(named)
    # The tokenizer's own call makes a token of it, and the model answers otherwise.
    assert tokenizer.sep_token_id in tokenizer("a dull [SEP] plot")["input_ids"][1:-1]
    assert Explanation.from_json(named.to_json()) == named


def test_a_prompt_keeps_its_special_tokens() -> None:
    model, tokenizer = build_language_model("llama")
    name = tokenizer.eos_token
    e = raison.explain(raison.load(model, tokenizer), f"a calm sea {name} so good", "occlusion", max_new_tokens=1)
    assert isinstance(e, GenerationExplanation)
    assert READ_AS_TEXT not in e.notes
    assert READ_AS_TEXT not in e.token(0).notes
    assert not any("special token" in said for said in cautions(e.token(0)))


def test_the_mask_of_a_masked_language_model_is_no_text() -> None:
    e = raison.explain(raison.load(*build_at_places("bert", AutoModelForMaskedLM)), "a [MASK] plot", "occlusion")
    assert isinstance(e, Explanation)
    assert READ_AS_TEXT not in e.notes
