"""The contract of citations, for every family that writes: plain values, alone as together, nothing changed."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import raison
from raison import Citations
from raison.core.errors import InputError
from raison.core.inputs.parts import parted
from raison.data import Row
from raison.data.streams import Item
from raison.methods import CATALOGUE
from raison.models.adapters.writing.generator import Generator
from raison.models.tokens.continuation import ContinuationEncoder
from raison.progress import hearing
from raison.report.explanations.citations_page import article
from raison.report.style.colours import Scale
from raison.runs.files.flat_records import records_of_citations
from tests.reused import reused
from tests.tiny import LANGUAGE_MODELS, WRITERS, build_language_model, build_writer

SOURCES = {
    "sea": "the old sailor told a story about the sea. it was quiet.",
    "plot": "a dull plot and nobody believed him at all.",
}
QUESTION, ANSWER = "who told a story?", "the sailor told it. a quiet story."
BUILD = {f"writer_{name}": (build_writer, name) for name in WRITERS} | {
    name: (build_language_model, name) for name in LANGUAGE_MODELS
}


@pytest.fixture(params=BUILD)
def writer(request: pytest.FixtureRequest) -> Iterator[Generator]:
    """A tiny model that writes: see tests/reused.py."""
    build, name = BUILD[request.param]
    yield from reused(request, ("writes", request.param), lambda: Generator(*build(name), name))


def cite(writer: Generator, **changes: object) -> Citations:
    given = {"answer": ANSWER, "template": "plain", "draws": 0, "method": "occlusion", "within": "source", **changes}
    return raison.cite(writer, QUESTION, SOURCES, **given)


@pytest.mark.in_turn(4)
def test_work_ends_between_two_passes_and_spoils_nothing(writer: Generator) -> None:
    def enough(_: int) -> None:
        raise InputError("enough")

    with hearing(enough), pytest.raises(InputError, match="enough"):
        cite(writer)
    with hearing(enough), pytest.raises(InputError, match="enough"):
        raison.explain(writer, QUESTION, "occlusion", output=ANSWER, progress=False)
    assert np.isfinite(cite(writer).scores).all()


def literal(writer: Generator, c: Citations, gone: str | None) -> list[float]:
    """Each statement's log-probability, by the model's reader of single tokens with one source for a unit."""
    places = {source.name: (source.start, source.end) for source in c.sources}
    source = writer.prompt(parted(c.prompt, places))
    output = writer.output(source, " " + ANSWER)[0]
    rows = ContinuationEncoder(source, output)
    tokens = tuple(dict.fromkeys(output.ids))
    reader = writer.reader(rows, tokens)
    encoding = reader.encode(rows.texts, "part")
    keep = torch.tensor([[name != gone for name in places]])
    logits = reader.masked_logits(encoding, [keep] * len(encoding), "delete")
    shares = [row[0].double().log_softmax(-1)[tokens.index(own)] for row, own in zip(logits, output.ids, strict=True)]
    sums, first = [], 0
    for statement in c.statements:
        sums.append(float(sum(shares[first : first + statement.tokens])))
        first += statement.tokens
    return sums


def test_scores_are_differences_of_plain_values(writer: Generator) -> None:
    c = cite(writer)
    whole = literal(writer, c, None)
    np.testing.assert_allclose([s.log_probability for s in c.statements], whole, atol=1e-4)
    for j, name in enumerate(SOURCES):
        drops = np.array(whole) - literal(writer, c, name)
        np.testing.assert_allclose([row[j] for row in c.scores], drops, atol=2e-4)


@pytest.mark.in_turn(2)
def test_a_statement_alone_is_as_among_others_and_nothing_changes(writer: Generator) -> None:
    before = {key: value.clone() for key, value in writer.model.state_dict().items()}
    state = torch.get_rng_state()
    together = cite(writer, method="kernel_shap", within="sentence", draws=2)
    # Some tokenizers spell a letter of the answer differently: spans are those of the answer as it was given.
    last = (ANSWER.index("a quiet"), len(ANSWER))
    alone = cite(writer, method="kernel_shap", within="sentence", draws=2, statements=[last])
    assert alone.statements[0].text == together.statements[-1].text
    np.testing.assert_allclose(alone.scores[0], together.scores[-1], atol=2e-4)
    assert Citations.from_json(together.to_json()) == together
    assert together.scores == cite(writer, method="kernel_shap", within="sentence", draws=2).scores
    assert all(torch.equal(value, before[key]) for key, value in writer.model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.in_turn(4)
def test_what_ran_and_its_cautions_are_stated(writer: Generator) -> None:
    """auto names the method that it took; what is to be said of an explanation is said of a citation."""
    chosen = cite(writer, method="auto(budget=50)")
    assert chosen.method == str(chosen.notes["auto"]).partition(":")[0] != "auto"
    alone = cite(writer, method=CATALOGUE.create(chosen.method))
    assert (chosen.config, chosen.scores) == (alone.config, alone.scores)
    if not writer.model.config.is_encoder_decoder:
        found = cite(writer, method="rpi(variant='paper', baselines=2, steps=2)")
        assert "equation 4 as printed" in found.notes["caution"]
        assert found.notes["caution"] in " ".join(str(found).split())


def test_scores_without_a_sign_are_told_so() -> None:
    writer = Generator(*build_language_model("llama"), "llama")
    amounts, signed = (cite(writer, method=method) for method in ("attention_average", "occlusion"))
    assert (amounts.signed, signed.signed) == (False, True)
    for c in (amounts, signed):
        assert Citations.from_json(c.to_json()) == c
        item = Item(0, "s", "x", "", Row("", None, 0))
        assert [row["signed"] for row in records_of_citations(item, c)] == [c.signed] * len(c.statements)
        shown = article(c)
        assert shown.low.startswith("0.") is not c.signed
        assert shown.states.palette == Scale(c.signed).palette()
