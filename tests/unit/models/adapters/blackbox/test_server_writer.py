"""What a model behind a server writes, and the sources of its answers: the numbers are those of the server's model."""

import math

import pytest

import raison
from raison.core.errors import AnswerError, InputError, UnsupportedError
from raison.judging.citing import estimate_cite
from tests.fake_server import OTHERS, WEIGHTS, Fake, distribution, probability, running

LLAMA = {"completions", "chat", "tokenize", "grammar", "bias", "template"}
VLLM = {"completions", "chat", "echo", "strict"}
PROMPT = "Review: a warm film, not dull"
PROMPT_SCORED = {"completions", "chat", "prompt_logprobs", "strict"}


def vllm(features: set[str]) -> Fake:
    return Fake(features=features, shape="parallel", top=5)


FAKES = [Fake(features=LLAMA), vllm(VLLM), vllm(PROMPT_SCORED)]
every_way = pytest.mark.parametrize("fake", FAKES, ids=["grammar", "echo", "prompt_logprobs"])


@every_way
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


def test_an_estimate_asks_nothing_not_even_for_the_answer() -> None:
    with running(Fake(features=LLAMA)) as fake:
        model = raison.load(fake.base)
        asked = len(fake.requests)
        with pytest.raises(InputError, match=r"so its answer is unknown: pass answer="):
            estimate_cite(model, "which film?", {"a": "a warm film.", "b": "a dull one."})
        assert len(fake.requests) == asked


def test_its_own_output_is_the_likeliest() -> None:
    with running(Fake(features=LLAMA)) as fake:
        model = raison.load(fake.base)
        e = raison.explain(model, PROMPT, max_new_tokens=1, method="occlusion", progress=False)
        assert e.output == next(iter(distribution(PROMPT)))
        chat = raison.explain(model, [{"role": "user", "content": PROMPT}], output=" great", method="occlusion")
    assert [unit.text for unit in chat.units] == ["Review", ":", "a", "warm", "film", ",", "not", "dull"]
    assert chat.prompt == f"<user>{PROMPT}<assistant>"


@every_way
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
        pytest.raises(UnsupportedError, match="does not return log-probabilities"),
    ):
        raison.load(fake.base)
    with running(Fake(features=LLAMA)) as fake:
        model = raison.load(fake.base)
        with pytest.raises(UnsupportedError, match="of='margin' without contrast="):
            raison.explain(model, PROMPT, output=" great", of="margin", progress=False)
        for word, match in [
            ("great", "begins with the output token"),
            (" ", "got an empty one"),
            (True, "True is not a word or a token id"),
            (1.5, "1.5 is not a word or a token id"),
        ]:
            with pytest.raises(InputError, match=match):
                raison.explain(model, PROMPT, output=" great", contrast=word, progress=False)
        with pytest.raises(raison.RaisonError, match="on a server"):
            raison.explain(model, PROMPT, output=" great", method="saliency", progress=False)


@every_way
@pytest.mark.parametrize("of", ["logit", "margin", "log_probability"])
def test_why_not_another_word(fake: Fake, of: str) -> None:
    """The log-odds of " great" against " terrible" are the sum of the words' weights."""
    with running(fake):
        model = raison.load(fake.base)
        options = {"output": " great", "contrast": "terrible", "of": of, "method": "occlusion", "progress": False}
        e = raison.explain(model, PROMPT, **options)
    assert e.contrast == (" terrible",)
    scores = dict(zip((unit.text for unit in e.units), e.scores[0], strict=True))
    expected = {"warm": WEIGHTS["warm"], "not": WEIGHTS["not"], "dull": WEIGHTS["dull"], "film": 0.0}
    assert {word: scores[word] for word in expected} == pytest.approx(expected, abs=1e-9)
    assert e.tokens[0].against_probability == pytest.approx(0.6 * (1 - probability(PROMPT)), abs=1e-9)
    assert e.notes["noise"]["value"] == pytest.approx(0, abs=1e-12)


@every_way
def test_a_contrast_for_each_token(fake: Fake) -> None:
    """In each place after the same words of the output; a token's number where the server is asked by numbers."""
    with running(fake):
        model = raison.load(fake.base)
        options = {"output": " great fine", "method": "occlusion", "of": "log_probability", "progress": False}
        e = raison.explain(model, PROMPT, contrast=["terrible", "bad"], **options)
        assert e.contrast == (" terrible", " bad")
        # This server's words other than the labels are as likely behind any prompt.
        assert e.tokens[1].value_full == pytest.approx(math.log(OTHERS[" fine"] / OTHERS[" bad"]), abs=1e-9)
        assert max(map(abs, e.scores[1])) < 1e-9
        if "grammar" in fake.features:
            by_number = raison.explain(model, PROMPT, contrast=[fake.id_of(" terrible"), fake.id_of(" bad")], **options)
            assert (by_number.scores, by_number.contrast) == (e.scores, e.contrast)
        else:
            with pytest.raises(InputError, match="only accepts text"):
                raison.explain(model, PROMPT, contrast=3, **options)


@every_way
def test_earlier_words_of_the_output(fake: Fake) -> None:
    """The second word is as likely as the server says behind the prompt and the first, or without one of them."""
    with running(fake):
        model = raison.load(fake.base)
        options = {"method": "occlusion", "of": "log_probability", "earlier": True, "progress": False}
        e = raison.explain(model, PROMPT, output=" great terrible", **options)
    first, second = e.scores
    assert [unit.text for unit in e.units][-1] == " great"
    assert len(second) == len(first) + 1
    value = distribution(f"{PROMPT} great")[" terrible"]
    assert e.tokens[1].value_full == pytest.approx(value, abs=1e-9)
    assert second[-1] == pytest.approx(value - distribution(PROMPT)[" terrible"], abs=1e-9)
    warm = [unit.text for unit in e.units].index("warm")
    without = f"{PROMPT.replace(' warm', '')} great"
    assert second[warm] == pytest.approx(value - distribution(without)[" terrible"], abs=1e-9)


@pytest.mark.parametrize("fault", ["429", "cut", "junk"])
def test_prompt_logprobs_of_a_server_that_misbehaves(fault: str) -> None:
    options = {"output": " great!", "method": "occlusion", "of": "log_probability", "progress": False}
    served = raison.Served(remember=False)
    with running(vllm(PROMPT_SCORED)) as fake:
        model = raison.load(fake.base, served=served)
        expected = raison.explain(model, PROMPT, **options)
        fake.faults += [fault, "", fault]
        assert raison.explain(model, PROMPT, **options).scores == expected.scores


@pytest.mark.parametrize(
    ("broken", "match"),
    [
        ([None, {"x": {"logprob": -1.0}}], "cannot be read"),
        ([None, {"3": {"logprob": 2.0, "decoded_token": " great"}}], "as a log-probability"),
        ([None, {"3": {"logprob": -1.0, "decoded_token": " other"}}], "merge with"),
        (None, "no prompt_logprobs"),
    ],
    ids=["no number", "above zero", "other tokens", "none"],
)
def test_prompt_logprobs_that_make_no_sense(broken: object, match: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(vllm(PROMPT_SCORED)) as fake:
        model = raison.load(fake.base)
        monkeypatch.setattr(fake, "_prompt_logprobs", lambda prompt: broken)
        with pytest.raises(AnswerError, match=match):
            raison.explain(model, PROMPT, output=" great", method="occlusion", progress=False)


@pytest.mark.parametrize("features", [VLLM, PROMPT_SCORED], ids=["echo", "prompt_logprobs"])
def test_an_output_that_melts_into_the_prompt_is_an_error(features: set[str]) -> None:
    with running(vllm(features)) as fake:
        model = raison.load(fake.base)
        fake.melting = ""
        with pytest.raises(AnswerError, match="merge"):
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


@every_way
def test_stored_answers_are_not_counted_beforehand(fake: Fake) -> None:
    with running(fake):
        for served in (None, raison.Served(max_requests=4)):
            model = raison.load(fake.base, served=served)
            loaded = len(fake.requests)
            raison.explain(model, PROMPT, output=" great!", method="occlusion", progress=False)
            sent = len(fake.requests) - loaded
            assert sent > 4 if served is None else sent == 0
