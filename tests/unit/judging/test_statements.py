"""evaluate of what a language model wrote: citations, and explanations of an output."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

import raison
from raison import Chat, Citations
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


ROLES = (
    "{% for m in messages %}<s>{{ m['role'] }}|\n{{ m['content'] | trim }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant|\n{% endif %}"
)


@pytest.mark.parametrize("unit", ["token", "word", "sentence", "part"])
@pytest.mark.parametrize("family", ["qwen3", "llama"])
def test_an_output_after_a_chat_is_judged_by_its_messages(family: str, unit: str) -> None:
    """What the template writes is never removed: with a tokenizer that begins texts with a token, and without."""
    model, tokenizer = build_language_model(family)
    tokenizer.chat_template = ROLES
    writer = Generator(model, tokenizer, family)
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Tell a story now"}]
    settings = {"output": " A tale", "of": "log_probability", "unit": unit, "removal": "delete", "progress": False}
    e = raison.explain(writer, chat, "occlusion", **settings)
    prompt, output = writer.prompt(Chat(tuple(chat))), [token.id for token in e.tokens]
    units, owners = prompt.units(unit)
    assert e.units == units
    between = [prompt.text[a.end : b.start] for a, b in itertools.pairwise(units)]
    assert unit == "token" or any("user" in text for text in between), "the template would be scored"
    assert all(
        owner == -1 or prompt.text[first:last].strip()
        for owner, (first, last) in zip(owners, prompt.offsets, strict=True)
    )

    def likelihood(ids: list[int]) -> float:
        logits = model(input_ids=torch.tensor([[*ids, *output]])).logits[0].double().log_softmax(-1)
        return sum(float(logits[len(ids) - 1 + place, token]) for place, token in enumerate(output))

    top = e.whole().order()[0]
    with torch.no_grad():
        kept = [token for token, owner in zip(prompt.ids, owners, strict=True) if owner != top]
        drop = likelihood([*prompt.ids]) - likelihood(kept)
    found = raison.evaluate(writer, e, "log_probability_drop", progress=False)
    assert values(found, "log_probability_drop") == pytest.approx((drop,), abs=1e-4)
    assert e.whole().scores[top] == pytest.approx(drop, abs=1e-4)


@pytest.mark.parametrize("output", [" A tale\n", " A tale.\n\n", "\n A tale"])
def test_white_space_around_an_output_belongs_to_it(output: str) -> None:
    writer = Generator(*build_language_model("llama"), "llama")
    settings = {"of": "log_probability", "removal": "delete", "progress": False}
    e = raison.explain(writer, "The old sailor", "occlusion", output=output, **settings)
    [drop] = values(raison.evaluate(writer, e, "log_probability_drop", progress=False), "log_probability_drop")
    assert drop == pytest.approx(max(e.whole().scores), abs=1e-4)


@pytest.mark.parametrize("template", ["plain", "chat"])
def test_names_of_special_tokens_in_sources_are_read_again_as_text(template: str) -> None:
    model, tokenizer = build_language_model("llama")
    tokenizer.chat_template = ROLES
    writer = Generator(model, tokenizer, "llama")
    sources = {"a": "Brandt founded <s></s> it.", "b": "Brandt said no."}
    given = {"answer": "Brandt.", "template": template, "draws": 0, "method": "occlusion", "within": "source"}
    c = raison.cite(writer, "Who is <s>?", sources, **given)
    found = raison.evaluate(writer, c, ["log_probability_drop", "harmless_change"], progress=False)
    assert values(found, "log_probability_drop") == pytest.approx([max(row) for row in c.scores], abs=1e-4)
