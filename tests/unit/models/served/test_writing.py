"""What a model behind a server writes, and the sources of its answers: the numbers are those of the server's model."""

import math

import pytest

import raison
from raison.core.errors import AnswerError, UnsupportedError
from tests.fake_server import Fake, distribution, probability, running

LLAMA = {"completions", "chat", "tokenize", "grammar", "bias", "template"}
VLLM = {"completions", "chat", "echo", "strict"}
PROMPT = "Review: a warm film, not dull"
FAKES = [Fake(features=LLAMA), Fake(features=VLLM, shape="parallel", top=5)]


@pytest.mark.parametrize("fake", FAKES, ids=["grammar", "echo"])
def test_every_token_of_an_output_is_scored(fake: Fake) -> None:
    with running(fake):
        model = raison.load(fake.base)
        e = raison.explain(model, PROMPT, output=" great!", method="occlusion", of="log_probability", progress=False)
    assert [token.text for token in e.tokens] == [" great", "!"]
    assert e.tokens[0].probability == pytest.approx(0.6 * probability(PROMPT), abs=1e-9)
    warm = [unit.text for unit in e.units].index("warm")
    without = probability("Review: a film, not dull")
    assert e.scores[0][warm] == pytest.approx(math.log(probability(PROMPT) / without), abs=1e-9)
    assert min(e.scores[0]) < 0
    assert e.notes["noise"]["value"] == 0
    assert "scored" in e.notes["served"]
    assert raison.GenerationExplanation.from_json(e.to_json()) == e


def test_its_own_output_is_the_likeliest() -> None:
    with running(Fake(features=LLAMA)) as fake:
        model = raison.load(fake.base)
        e = raison.explain(model, PROMPT, max_new_tokens=1, method="occlusion", progress=False)
        assert e.output == next(iter(distribution(PROMPT)))
        chat = raison.explain(model, [{"role": "user", "content": PROMPT}], output=" great", method="occlusion")
    assert [unit.text for unit in chat.units] == ["Review", ":", "a", "warm", "film", ",", "not", "dull"]
    assert chat.prompt == f"<user>{PROMPT}<assistant>"


@pytest.mark.parametrize("fake", FAKES, ids=["grammar", "echo"])
def test_sources_of_an_answer(fake: Fake) -> None:
    sources = {"dull": "It is dull.", "warm": "Review: it is great, and warm."}
    with running(fake):
        model = raison.load(fake.base)
        options = {"answer": " great", "draws": 0, "template": "plain", "within": "source", "method": "occlusion"}
        found = raison.cite(model, "How is it?", sources, **options)
    assert found.top(0) == "warm"
    prompt = found.prompt
    without = prompt.replace("Review: it is great, and warm.", "")
    drop = math.log(math.exp(distribution(prompt)[" great"])) - distribution(without)[" great"]
    assert found.scores[0][1] == pytest.approx(drop, abs=0.2)
    assert found.notes["noise"]["repeated"] > 1
    assert raison.Citations.from_json(found.to_json()) == found
    assert "Noise" in found.to_html()


def test_what_cannot_be_asked_is_refused() -> None:
    with (
        running(Fake(features={"completions"})) as fake,
        pytest.raises(UnsupportedError, match="no log-probabilities"),
    ):
        raison.load(fake.base)
    with running(Fake(features=LLAMA)) as fake:
        model = raison.load(fake.base)
        with pytest.raises(UnsupportedError, match="contrast= is not possible"):
            raison.explain(model, PROMPT, output=" great", contrast="bad", progress=False)
        with pytest.raises(UnsupportedError, match="earlier= is not possible"):
            raison.explain(model, PROMPT, output=" great", earlier=True, progress=False)
        with pytest.raises(raison.RaisonError, match="on a server"):
            raison.explain(model, PROMPT, output=" great", method="saliency", progress=False)


def test_an_output_that_melts_into_the_prompt_is_an_error() -> None:
    with running(Fake(features=VLLM, shape="parallel", top=5)) as fake:
        model = raison.load(fake.base)
        fake.melting = True
        with pytest.raises(AnswerError, match="melt into"):
            raison.explain(model, PROMPT, output=" great", method="occlusion", progress=False)


def test_each_slot_of_llama_cpp_reads_a_long_beginning_by_itself() -> None:
    with running(Fake(features=LLAMA | {"slots"})) as fake:
        server = raison.load(fake.base, concurrency=8).server
    begun = "x" * 1000
    assert server.lanes([f"{begun}{n}" for n in range(10)]) == 1
    assert server.lanes(sorted(begun + 10 * chr(65 + n % 26) for n in range(1000))) == 2
    assert server.lanes([str(n) for n in range(10)]) == 4
    with running(Fake(features=LLAMA)) as fake:
        assert raison.load(fake.base, concurrency=8).server.lanes([begun, begun]) == 8
