"""Which method explained an output, and what is to be said of it: of each token and of the whole."""

from dataclasses import fields

import pytest

import raison
from raison.combining.rule import Option
from raison.core.errors import TextTooLongError
from raison.core.inputs.encoding import Encoding
from raison.core.results.generation import GenerationExplanation
from raison.methods import CATALOGUE, auto
from raison.models.adapters.writing.generator import Generator
from tests.tiny import build_language_model

PROMPT, OUTPUT = "the old sailor told", " a modest story"


@pytest.fixture(scope="module")
def generator() -> Generator:
    return Generator(*build_language_model("llama"), "tiny")


def test_each_token_states_the_method_that_explained_it(generator: Generator) -> None:
    """auto chooses by the number of units, which grows with earlier tokens; the whole output states what was asked."""
    found = raison.explain(generator, PROMPT, "auto(budget=20)", output=OUTPUT + " and a song", earlier=True)
    stated = [found.token(number) for number in range(len(found.tokens))]
    ran = [str(e.notes["auto"]).partition(":")[0] for e in stated]
    assert [e.method for e in stated] == ran
    assert len(set(ran)) > 1, "the budget is to allow one method for few units, another for more"
    for e in stated:
        assert e.config.keys() == {f.name for f in fields(CATALOGUE.get(e.method))}
    assert (found.method, found.config) == ("auto", {"budget": 20})
    assert found.whole().method == "auto"
    assert all(name in found.notes["auto"] for name in ran)
    assert GenerationExplanation.from_json(found.to_json()) == found
    alone = raison.explain(generator, PROMPT, "auto(budget=20)", output=OUTPUT)
    assert alone.method == alone.token(0).method != "auto"
    assert all(token.method is None for token in alone.tokens)


def test_an_output_of_signed_and_unsigned_scores_can_be_read_again(
    generator: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unsigned rows come first: the whole output is signed as soon as one row is."""
    options = [Option("saliency", "few units"), Option("occlusion", "many units")]

    def taken(_model: object, encoding: Encoding, text: int, *_: object) -> list[Option]:
        return [options[encoding.unit_counts[text] > 5]]

    monkeypatch.setattr(auto, "options", taken)
    found = raison.explain(generator, PROMPT, "auto", output=OUTPUT, earlier=True)
    assert {token.signed for token in found.tokens} == {False, True}
    assert found.signed
    assert [found.token(number).signed for number in range(len(found.tokens))] == [t.signed for t in found.tokens]
    assert GenerationExplanation.from_json(found.to_json()) == found


def test_a_caution_about_every_token_is_one_about_the_output(generator: Generator) -> None:
    found = raison.explain(generator, PROMPT, "rpi(variant='paper')", output=OUTPUT)
    assert found.notes["caution"] == found.token(0).notes["caution"]
    assert found.notes["caution"] in " ".join(str(found).split())


@pytest.mark.parametrize("method", ["occlusion", "input_x_gradient", "attention_rollout"])
def test_the_last_token_of_an_output_needs_no_room(method):
    writer = Generator(*build_language_model("gpt2"), "tiny")
    most = writer.max_tokens - len(writer.prompt(PROMPT).ids) + 1
    with pytest.raises(TextTooLongError):
        raison.explain(writer, PROMPT, method, max_new_tokens=most + 1)
    writer.model.generation_config.eos_token_id = [10**6]
    assert len(raison.explain(writer, PROMPT, method, max_new_tokens=most).tokens) == most
