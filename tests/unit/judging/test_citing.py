"""What citing will cost, said before: never less than it takes, and exact where nothing depends on what was found."""

from dataclasses import asdict

import pytest

import raison
from raison.core.errors import InputError
from raison.judging.citing import estimate_cite
from raison.models.adapters.writing.generator import Generator
from tests.tiny import build_language_model

SOURCES = {
    "sea": "the old sailor told a story. it was quiet.",
    "plot": "a dull plot. nobody believed him.",
    "owl": "she sold a film.",
}
ANSWER = "the sailor told it. a dull one."


@pytest.fixture(scope="module")
def writer() -> Generator:
    return Generator(*build_language_model("llama"), "llama")


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("within", ["sentence", "source"])
@pytest.mark.parametrize(
    "method", ["auto", "occlusion", "context_cite(ablations=8)", "kernel_shap(samples=8)", "coarse_to_fine"]
)
def test_no_more_passes_than_were_said(method: str, within: str, writer: Generator) -> None:
    given = {"answer": ANSWER, "template": "plain", "method": method, "within": within, "draws": 2}
    said = estimate_cite(writer, "who told it?", SOURCES, **given)
    cited = raison.cite(writer, "who told it?", SOURCES, **given)
    assert (said.sources, said.sentences, said.statements) == (3, 5, 2)
    assert said.tokens >= len(cited.answer_ids)
    assert cited.evaluations <= said.passes <= 3 * cited.evaluations
    assert said.backwards == 0
    assert min(said.seconds, said.model_bytes, said.batch_bytes) > 0


def test_gradients_are_counted_for_each_token(writer: Generator) -> None:
    given = {"answer": ANSWER, "template": "plain", "within": "source", "draws": 0}
    said = estimate_cite(writer, "who told it?", SOURCES, method="input_x_gradient", **given)
    tokens = len(raison.cite(writer, "who told it?", SOURCES, method="random", **given).answer_ids)
    assert said.backwards == tokens
    assert f"{tokens} of them with gradients" in said.text()
    assert set(asdict(said)) >= {"passes", "seconds", "model_bytes", "batch_bytes"}


def test_without_lights_and_sentences_nothing_is_counted_twice(writer: Generator) -> None:
    given = {"answer": ANSWER, "template": "plain", "within": "source", "method": "occlusion", "draws": 0}
    said = estimate_cite(writer, "who told it?", SOURCES, **given)
    cited = raison.cite(writer, "who told it?", SOURCES, **given)
    # The whole prompt is the method's too, and the empty one is everybody's.
    assert said.passes - cited.evaluations <= 2


def test_what_cite_refuses_is_refused_before(writer: Generator) -> None:
    with pytest.raises(InputError, match="the question is empty"):
        estimate_cite(writer, " ", SOURCES)
    with pytest.raises(raison.RaisonError, match="self_explanation"):
        estimate_cite(writer, "who?", SOURCES, answer=ANSWER, template="plain", method="self_explanation")
