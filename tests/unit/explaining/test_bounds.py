"""Upper bounds of passes, by what is explained."""

import pytest

import raison
from raison.core.inputs.unit import Unit
from raison.core.method import Cost
from raison.explaining.bounds import (
    CitationSize,
    TextSize,
    count_keeps,
    of_choice,
    of_citations,
    of_output,
    of_text,
    of_tokens,
)
from raison.explaining.measuring import create_metrics
from raison.explaining.sources.citation_settings import CitationSettings
from raison.explaining.sources.sourced_prompt import sourced_prompt
from raison.methods import CATALOGUE
from raison.models.adapters.writing.generator import Generator
from tests.tiny import build_language_model

SIZE = CitationSize(sources=3, sentences=5, statements=2, answer_tokens=8, tokens=40, lights=2)
IG = CATALOGUE.create("integrated_gradients(steps=50)")
OCCLUSION = CATALOGUE.create("occlusion")


def test_each_prediction_of_a_text_counts() -> None:
    assert of_text(IG, TextSize(4, 6)) == Cost(52, 50)
    assert of_text(IG, TextSize(4, 6), 3) == Cost(156, 150)
    assert of_text(OCCLUSION, TextSize(4, 6), 0) == Cost()


def test_some_methods_pass_over_tokens_and_not_over_units() -> None:
    assert of_text(CATALOGUE.create("value_zeroing"), TextSize(4, 9)) == Cost(10)
    both = CATALOGUE.create("ensemble(methods=('value_zeroing', 'occlusion'))")
    assert of_text(both, TextSize(4, 9)) == Cost(10 + 5)


def test_tokens_share_forward_passes_unless_earlier_ones_are_units() -> None:
    assert of_tokens(IG, TextSize(4, 6), 16) == of_output(IG, TextSize(4, 6), 16) == Cost(52, 800)
    assert of_output(IG, TextSize(4, 6), 16, earlier=True) == Cost(16 * 52, 800)
    assert of_output(OCCLUSION, TextSize(4, 6), 3) == Cost(5)
    assert of_output(OCCLUSION, TextSize(4, 6), 3, earlier=True) == Cost(5 + 6 + 7)
    zeroing = CATALOGUE.create("value_zeroing")
    assert of_output(zeroing, TextSize(4, 6), 3, earlier=True) == Cost(7 + 8 + 9)


def test_a_cheap_method_that_auto_may_try_in_vain_counts() -> None:
    auto = CATALOGUE.create("auto")
    assert of_text(auto, TextSize(5, 7)) == Cost(32)
    assert of_text(auto, TextSize(30, 32)) == Cost(100) + CATALOGUE.create("deep_lift").cost(30)
    assert of_text(CATALOGUE.create("auto(budget=2000)"), TextSize(30, 32)) == Cost(2000)


def test_every_map_is_looked_at_where_one_is_chosen() -> None:
    units = [Unit(2 * place, 2 * place + 1, "a") for place in range(5)]
    [metric] = create_metrics(["aopc_comprehensiveness"])
    keeps = count_keeps([metric], units)
    assert keeps > 1
    assert count_keeps([metric, metric], units) == keeps
    assert of_choice(CATALOGUE.create("random(draws=4)"), [metric], units) == Cost(4 * keeps)


def cited(method: str, **options: object) -> Cost:
    return of_citations(SIZE, CitationSettings.from_options(method=method, **options))


def test_statements_share_keeps_that_do_not_depend_on_values() -> None:
    ends = 2
    assert cited("occlusion", within="source") == Cost(4 + ends)
    # Occlusion's scores of sentences do not add up, so whole sources are left out as well.
    assert cited("occlusion") == Cost(6 + 4 + ends)
    assert cited("shapley_exact", within="source") == Cost(8 + ends)
    # Each statement may ask for others, but there are no more than all sets of units.
    assert cited("partition_shap(samples=6)", within="source") == Cost(8 + ends)
    assert cited("solvex(beam=1)", within="source").forwards <= 8 + ends
    assert cited("auto") == Cost(1 + 3 + 5 + ends)


def test_statements_have_backward_passes_for_each_token() -> None:
    # The prompt without its sources is read with these deleted, and with the baseline in their place.
    assert cited("integrated_gradients(steps=50)") == Cost(52 + 2 + 1, 8 * 50)


def test_the_size_of_an_unknown_answer_is_that_of_the_longest() -> None:
    writer = Generator(*build_language_model("llama"), "llama")
    prompt = sourced_prompt(
        writer, "who told it?", {"a": "the sea is wet.", "b": "a dull plot. it was quiet."}, "plain"
    )
    size = CitationSize.of_any_answer(prompt.source, 7, draws=4)
    assert (size.sources, size.sentences, size.statements, size.answer_tokens) == (2, 3, 7, 7)
    assert size.tokens == len(prompt.source.prompt.ids) + 7
    assert size.lights == 2 + 2 * (1 + 4)
    assert CitationSize.of_any_answer(prompt.source, 7, draws=0).lights == 2


@pytest.mark.parametrize("call", ["kernel_shap", "lime", "context_cite", "shapley_sampling(samples=64)"])
def test_statements_ask_some_methods_for_the_same_keeps(call: str) -> None:
    writer = Generator(*build_language_model("llama"), "llama")
    sources = {name: f"the {name} is wet. it was quiet." for name in ("sea", "film", "plot")}
    options = {"template": "plain", "method": call, "within": "source", "draws": 0}
    answer = "the sailor told it. a dull one."
    two = raison.cite(writer, "who told it?", sources, answer=answer, **options)
    one = raison.cite(writer, "who told it?", sources, answer=answer, statements=[(0, 19)], **options)
    assert len(two.statements) == 2
    assert two.evaluations == one.evaluations
