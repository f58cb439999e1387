"""evaluate of what a language model wrote: citations, and explanations of an output."""

from dataclasses import replace

import numpy as np
import pytest

import raison
from raison import Citations
from raison.core.errors import InputError, UnsupportedError
from raison.core.inputs.rationale import Span
from raison.models.adapters.writing.generator import Generator
from tests.tiny import build_language_model, build_writer
from tests.unit.explaining.test_answers import ROWS, SOURCES, TEMPLATE, WRITER, literal

METRICS = ["comprehensiveness", "sufficiency", "log_probability_drop", "linear_datamodeling_score", "infidelity"]
QUESTION = "who told it?"
TOLD = {"sea": "the old sailor told a story about the sea. it was quiet.", "plot": "a dull plot. nobody believed him."}


def cite(row, **changes):
    given = {"answer": row["answer"], "template": TEMPLATE, "draws": 0, **changes}
    return raison.cite(WRITER, row["question"], SOURCES, **given)


def values(scores, metric):
    return next(one for one in scores.metrics if one.metric == metric).values


def test_citations_are_judged_by_their_sources():
    cited = [cite(row) for row in ROWS]
    scores = raison.evaluate(WRITER, cited, METRICS, progress=False)
    for row, top, found in zip(ROWS, ("port", "owl"), values(scores, "log_probability_drop"), strict=True):
        without = [name for name in SOURCES if name != top]
        assert found == pytest.approx(literal(row, SOURCES) - literal(row, without), abs=1e-5)
    assert values(scores, "comprehensiveness") == values(scores, "log_probability_drop")
    assert min(values(scores, "linear_datamodeling_score")) > 0.5
    again = raison.evaluate(WRITER, [Citations.from_json(c.to_json()) for c in cited], METRICS, progress=False)
    assert [one.values for one in again.metrics] == [one.values for one in scores.metrics]
    # One, and the table of a comparison, say the same.
    table = raison.compare(WRITER, ROWS, "occlusion", "log_probability_drop", template=TEMPLATE, progress=False)
    assert values(table.rows[0], "log_probability_drop") == pytest.approx(values(scores, "log_probability_drop"))
    alone = raison.evaluate(WRITER, cited[0], METRICS, progress=False)
    assert values(alone, "sufficiency") == pytest.approx(values(scores, "sufficiency")[:1])


def test_known_sources_of_citations():
    c = cite(ROWS[0])
    port = c.sources[1]
    scores = raison.evaluate(
        WRITER, c, ["precision_at_top", "recall_at_top"], rationales=[((Span(port.start, port.end),),)], progress=False
    )
    assert [one.values for one in scores.metrics] == [(1.0,), (1.0,)]


@pytest.mark.parametrize("template", ["plain", "[{question}] {sources} ->"])
@pytest.mark.parametrize("build", [build_language_model, build_writer])
def test_prompts_of_every_template_are_read_again(build, template):
    name = "llama" if build is build_language_model else "t5"
    writer = Generator(*build(name), name)
    own = raison.text.sourced.SourceTemplate("own", "read {sources} then {question}", source="note {id}: {text}")
    for one in (template, own):
        c = raison.cite(writer, QUESTION, TOLD, answer="a quiet story.", template=one, draws=0, method="occlusion")
        scores = raison.evaluate(writer, c, ["log_probability_drop"], progress=False)
        assert values(scores, "log_probability_drop")[0] == pytest.approx(max(c.scores[0]), abs=1e-3)


@pytest.mark.parametrize("build", [build_language_model, build_writer])
def test_an_output_is_judged_by_its_log_probability(build):
    name = "llama" if build is build_language_model else "bart"
    writer = Generator(*build(name), name)
    prompt, output = "the old sailor told a modest story.", " a quiet sea."
    e = raison.explain(writer, prompt, "occlusion", of="log_probability", output=output, removal="delete")
    scores = raison.evaluate(writer, e, METRICS, progress=False)
    assert values(scores, "log_probability_drop")[0] == pytest.approx(max(e.whole().scores), abs=1e-3)
    assert np.isfinite([one.values for one in scores.metrics]).all()
    probability = raison.explain(writer, prompt, "occlusion", output=output)
    assert np.isfinite(raison.evaluate(writer, probability, METRICS[:4], progress=False).metrics[0].values).all()
    with pytest.raises(UnsupportedError, match="infidelity needs explanations of an output's log-probability"):
        raison.evaluate(writer, probability, METRICS, progress=False)


def test_what_cannot_be_judged_says_why():
    c = cite(ROWS[0])
    name = "llama"
    other = Generator(*build_language_model(name), name)
    earlier = raison.explain(other, "the old sailor.", "occlusion", output=" a sea.", earlier=True)
    contrast = raison.explain(other, "the old sailor.", "occlusion", output=" a", contrast="the")
    plain = raison.explain(other, "the old sailor.", "occlusion", output=" a sea.")
    for writer, given, message in (
        (WRITER, replace(c, answer_ids=()), "cite again"),
        (WRITER, replace(c, statements=(replace(c.statements[0], log_probability=-40.0),)), "another model"),
        (WRITER, [], "at least one"),
        (WRITER, "text", "at least one"),
        (other, earlier, "earlier output tokens"),
        (other, contrast, "is contrasted with"),
    ):
        with pytest.raises(InputError, match=message):
            raison.evaluate(writer, given, progress=False)
    with pytest.raises(InputError, match="raison.load"):
        raison.evaluate("name", plain)  # type: ignore[arg-type]
