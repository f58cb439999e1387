"""What makes and judges explanations of language models that write: numbers, or one line that says why not."""

import numpy as np
import pytest

import raison
from raison import Citations
from raison.core.capabilities.token_predictions import TokenPredictions
from raison.core.errors import InputError, UnsupportedError
from raison.core.inputs.parts import parted
from raison.core.inputs.rationale import Span
from raison.explaining.answers import Answers, answers_of
from raison.explaining.settings import Settings
from raison.judging.estimate import estimate
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.models.adapters.writing.generator import Generator
from tests.tiny import CHAT_TEMPLATE, build_language_model, build_writer

SOURCES = {
    "sea": "the old sailor told a story about the sea. it was quiet.",
    "plot": "a dull plot and nobody believed him at all.",
    "owl": "she sold a modest film. he loved it so much.",
}
ANSWERS = {"who told a story?": "the sailor told it.", "what plot?": "a dull one."}
REFUSED = {"consistency", "max_sensitivity", "simulatability"}
"""Metrics of several texts or moved embeddings."""
TOLERANT = {"harmless_change": "harmless_change(tolerance=1.0)"}
"""Settings with which a random model gives numbers for some texts: the others have no harmless edit."""
INSIDE = ["attention_rollout", "deep_lift", "input_x_gradient", "integrated_gradients(steps=3)", "mp_pi"]


@pytest.fixture(scope="module", params=["llama", "t5"])
def writer(request: pytest.FixtureRequest) -> Generator:
    build = build_writer if request.param == "t5" else build_language_model
    return Generator(*build(request.param), request.param)


@pytest.fixture(scope="module")
def cited(writer: Generator) -> list[Citations]:
    given = {"template": "plain", "draws": 0, "method": "occlusion", "within": "source"}
    return [raison.cite(writer, question, SOURCES, answer=answer, **given) for question, answer in ANSWERS.items()]


@pytest.mark.parametrize("name", METRICS.names)
def test_every_metric_gives_numbers_or_says_why_not(name: str, writer: Generator, cited: list[Citations]) -> None:
    marks = [((Span(c.sources[0].start, c.sources[0].end),),) for c in cited]
    if name in REFUSED:
        with pytest.raises(UnsupportedError, match=f"{name}.* needs") as refusal:
            raison.evaluate(writer, cited, name, rationales=marks, progress=False)
        assert len(refusal.value.reasons) >= 1
        assert "\n" not in str(refusal.value)
        return
    some, name = name in TOLERANT, TOLERANT.get(name, name)
    [scores] = raison.evaluate(writer, cited, name, rationales=marks, progress=False).metrics
    known = np.isfinite(scores.values)
    assert known.any() if some else known.all()
    # The shorter one alone is what it is beside the other.
    [alone] = raison.evaluate(writer, cited[1], name, rationales=marks[1:], progress=False).metrics[0].values
    np.testing.assert_allclose(alone, scores.values[1], atol=1e-3)


@pytest.mark.parametrize("name", INSIDE)
def test_methods_that_look_inside_add_up_over_the_tokens(name: str, writer: Generator) -> None:
    [(question, answer), *_] = ANSWERS.items()
    method = METHODS.create(name)
    given = {"answer": answer, "template": "plain", "draws": 0, "method": method, "removal": "delete"}
    if name.startswith("mp_pi") and writer.name == "t5":
        with pytest.raises(UnsupportedError, match="only causal models"):
            raison.cite(writer, question, SOURCES, **given)
        return
    c = raison.cite(writer, question, SOURCES, within="source", **given)
    prompt = parted(c.prompt, {source.name: (source.start, source.end) for source in c.sources})
    whole = raison.explain(writer, prompt, method, of="log_probability", output=" " + answer, removal="delete").whole()
    assert c.of == "log_probability"
    np.testing.assert_allclose(c.scores[0], whole.scores, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["decompx", "value_zeroing", "self_explanation", "aml", "amortized_shap", "at2", "ivra"]
)
def test_methods_that_need_more_are_refused(name: str, writer: Generator) -> None:
    with pytest.raises(raison.RaisonError) as refusal:
        raison.cite(writer, "who told it?", SOURCES, answer="the sailor.", template="plain", draws=0, method=name)
    assert "\n" not in str(refusal.value)


def test_what_was_chosen_has_a_random_control(writer: Generator) -> None:
    rows = [{"question": q, "sources": SOURCES, "answer": a, "gold": "sea"} for q, a in ANSWERS.items()]
    table = raison.compare(
        writer, rows, ["random(draws=4)", "occlusion"], ["log_probability_drop", "precision_at_top"],
        select="log_probability_drop", template="plain", progress=False,
    )  # fmt: skip
    best = {row.method: row.metrics[0].values for row in table.rows}
    chosen = "random(draws=4) by log_probability_drop"
    assert set(best) == {"random(draws=4)", "occlusion", "random", chosen}
    assert all(a >= b - 1e-6 for a, b in zip(best[chosen], best["random(draws=4)"], strict=True))


def test_an_estimate_counts_what_a_comparison_takes(writer: Generator) -> None:
    rows = [{"question": q, "sources": SOURCES, "answer": a} for q, a in ANSWERS.items()]
    answers = answers_of(writer, rows, "plain")
    methods = ["occlusion", "input_x_gradient"]
    cost = estimate(writer, answers, methods, ["log_probability_drop"], Settings("part"))
    table = raison.compare(writer, answers, methods, ["log_probability_drop"], progress=False)
    spent = {row.method: row for row in table.rows}
    assert cost.forwards["occlusion"] == len(rows) * (len(SOURCES) + 1)
    assert cost.backwards["input_x_gradient"] == pytest.approx(len(rows) * spent["input_x_gradient"].gradients.mean)
    assert min(cost.seconds, cost.model_bytes, cost.batch_bytes) > 0
    assert answers.of(writer).offers(TokenPredictions)


def test_a_text_names_one_answer() -> None:
    """Two citations of one conversation, with other sources, cannot be told apart by prompt and answer."""
    model, tokenizer = build_language_model("llama")
    tokenizer.chat_template = CHAT_TEMPLATE
    writer = raison.load(model, tokenizer)
    chat = [{"role": "user", "content": f"{SOURCES['sea']} {SOURCES['plot']} who told a story?"}]
    given = {"answer": " the sailor.", "method": "occlusion", "draws": 0, "within": "source"}
    cited = [raison.cite(writer, chat, {name: SOURCES[name] for name in names}, **given)
             for names in (["sea"], ["sea", "plot"])]  # fmt: skip
    assert (cited[0].prompt, cited[0].answer) == (cited[1].prompt, cited[1].answer)
    for one in cited:
        assert raison.evaluate(writer, [one, one], "aopc_comprehensiveness", progress=False).metrics
    with pytest.raises(InputError, match=r"same text, but other sources or tokens: explain or evaluate them in sep"):
        raison.evaluate(writer, cited, "aopc_comprehensiveness", progress=False)


def test_no_answer_is_no_comparison(writer: Generator) -> None:
    with pytest.raises(InputError, match="no answer given"):
        raison.compare(writer, Answers((), ()), "occlusion", progress=False)
