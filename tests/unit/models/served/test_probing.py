"""What a server can do is found out by its answers, and the label words' probabilities are right in every tier."""

from dataclasses import replace

import pytest

import raison
from raison.core.errors import AnswerError, LoadError, ServerError
from raison.text.prompts import find
from tests.fake_server import Fake, probability, running

TEXT = "a warm and great film, not dull"
LLAMA = {"completions", "chat", "tokenize", "grammar", "bias"}
VLLM = {"completions", "chat", "echo", "strict"}
HOSTED = {"chat", "biased", "strict"}


def chat() -> raison.Prompt:
    labels = {"negative": " terrible", "positive": " great"}
    return replace(find("sentiment_chat"), query="Review:{text}", labels=labels)


@pytest.mark.parametrize(
    ("fake", "way"),
    [
        (Fake(features=LLAMA), "by grammar"),
        (Fake(features=LLAMA, top=2), "by grammar"),
        (Fake(features=LLAMA - {"grammar"}, top=2), "by logit_bias"),
        (Fake(features=VLLM, shape="parallel", top=5), "by echo"),
        (Fake(features=VLLM | {"tokenize"}, shape="parallel", top=2), "by echo"),
    ],
)
def test_scored_probabilities_are_those_of_the_model(fake: Fake, way: str) -> None:
    with running(fake):
        model = raison.load(fake.base, prompt="sentiment")
        e = raison.explain(model, TEXT, method="occlusion", progress=False)
    assert model.reader.tier == "scored"
    assert way in e.notes["served"]
    assert e.probabilities[1] == pytest.approx(probability(TEXT), abs=1e-9)
    assert e.value_empty == pytest.approx(0.5, abs=1e-9)
    without = probability(TEXT.replace("great ", ""))
    assert e.scores[3] == pytest.approx(probability(TEXT) - without, abs=1e-9)
    assert min(e.scores) < 0


def test_a_label_outside_the_first_k_is_bounded_and_said() -> None:
    fake = Fake(features={"completions"}, top=2)
    with running(fake):
        model = raison.load(fake.base, prompt="sentiment")
        e = raison.explain(model, "great great", method="occlusion", progress=False)
    assert model.reader.tier == "top-k"
    true = 1 - probability("great great")
    # " fine" is the second, and what is left of the whole is less than its probability.
    great = 0.6 * (1 - true)
    left = 1 - great - 0.25
    assert e.probabilities[0] == pytest.approx(left / (left + great), abs=1e-9)
    assert true < e.probabilities[0] <= true + e.notes["noise"]["bound"]
    assert e.notes["noise"]["value"] >= e.notes["noise"]["bound"] > 0


@pytest.mark.parametrize("of", ["log_odds", "log_probability", "margin"])
def test_what_is_not_known_of_a_probability_is_not_ranked_on_another_scale(of: str) -> None:
    with running(Fake(features={"completions"}, top=1)) as fake:
        model = raison.load(fake.base, prompt="sentiment", served=raison.Served(remember=False))
        e = raison.explain(model, "a warm great film", "occlusion", of=of, progress=False)
    assert e.notes["noise"]["bound"] > 0.4
    assert e.notes["noise"]["value"] > 0.4
    assert e.unranked == tuple(range(len(e.units)))


def test_a_biased_report_is_no_score() -> None:
    with running(Fake(features=HOSTED | {"tokenize"}, top=5)) as fake:
        model = raison.load(fake.base, prompt=chat())
        e = raison.explain(model, TEXT, method="occlusion", progress=False)
    assert model.reader.tier == "top-k"
    assert e.probabilities[1] == pytest.approx(probability(TEXT), abs=1e-9)


@pytest.mark.parametrize("features", [{"completions", "n"}, {"completions"}])
def test_text_alone_gives_shares_with_their_interval(features: set[str]) -> None:
    with running(Fake(features=features, top=0)) as fake:
        model = raison.load(fake.base, prompt="sentiment", served=raison.Served(samples=10))
        e = raison.explain(model, "warm, not dull", method="occlusion", progress=False)
    assert model.reader.tier == "text"
    assert "10 sampled answers" in e.notes["served"]
    assert abs(e.probabilities[1] - probability("warm, not dull")) <= e.notes["noise"]["bound"]
    assert e.notes["noise"]["bound"] > 0.1
    assert set(e.unranked) == {unit for unit, score in enumerate(e.scores) if abs(score) <= e.notes["noise"]["value"]}


def test_noise_comes_from_other_answers_also_from_a_server_that_keeps_to_seeds() -> None:
    with running(Fake(features={"completions"}, top=0)) as fake:
        model = raison.load(fake.base, prompt="sentiment", served=raison.Served(samples=10))
        raison.explain(model, "warm, not dull", method="occlusion", progress=False)
        by_prompt: dict[str, list[int]] = {}
        for body in fake.requests:
            if "seed" in body:
                by_prompt.setdefault(body["prompt"], []).append(body["seed"])
    repeated = [seeds for seeds in by_prompt.values() if len(seeds) > 9]
    assert repeated
    assert all(len(seeds) == len(set(seeds)) for seeds in repeated)


def test_words_that_melt_into_the_prompt_are_refused() -> None:
    with running(Fake(features=VLLM, shape="parallel", melting="")) as fake:
        model = raison.load(fake.base, prompt="sentiment")
        # The echo failed its trial: the likeliest tokens are what is left.
        assert model.reader.tier == "top-k"
    with running(Fake(features=LLAMA)) as fake:
        labels = {"negative": "terrible", "positive": "great"}
        prompt = replace(find("sentiment"), labels=labels, shot="{text} is{label}", query="")
        with pytest.raises(LoadError, match="merges with"):
            raison.load(fake.base, prompt=prompt)


def test_label_words_of_several_tokens_take_more_than_the_next_one() -> None:
    prompt = replace(find("sentiment"), labels={"negative": " not great", "positive": " great"})
    with running(Fake(features=LLAMA)) as fake:
        model = raison.load(fake.base, prompt=prompt)
        assert model.reader.description.endswith("by grammar)")
        assert model.reader.requests == 2
    with running(Fake(features=LLAMA - {"grammar", "bias"})) as fake, pytest.raises(LoadError, match="several tokens"):
        raison.load(fake.base, prompt=prompt)


def test_what_a_server_cannot_do_is_refused_with_the_way_out() -> None:
    with running(Fake(features=HOSTED, top=5)) as fake, pytest.raises(ServerError, match="Take a prompt with `chat`"):
        raison.load(fake.base, prompt="sentiment")
    with running(Fake(features={"completions"})) as fake:
        prompt = replace(find("sentiment"), labels={"negative": " zebra", "positive": " yak"})
        with pytest.raises(AnswerError, match="none of the label words"):
            raison.load(fake.base, prompt=prompt)


def test_methods_with_gradients_say_no() -> None:
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment")
        with pytest.raises(raison.RaisonError, match="on a server"):
            raison.explain(model, TEXT, method="integrated_gradients", progress=False)
        with pytest.raises(raison.RaisonError, match="only up to a constant"):
            raison.explain(model, TEXT, of="logit", progress=False)


def test_noise_is_measured_and_no_unit_is_ranked_below_it() -> None:
    with running(Fake(changing=0.2)) as fake:
        model = raison.load(fake.base, prompt="sentiment", concurrency=1)
        e = raison.explain(model, TEXT, method="occlusion", progress=False)
    noise = e.notes["noise"]
    assert noise["repeated"] == 8
    assert 0 < noise["mean"] <= noise["value"] < 0.11
    assert e.unranked
    assert all(abs(e.scores[unit]) <= noise["value"] for unit in e.unranked)
    assert "not ranked" in e.to_html()
    assert raison.Explanation.from_json(e.to_json()) == e
    with running(Fake()) as fake:
        steady = raison.explain(raison.load(fake.base, prompt="sentiment"), TEXT, method="occlusion", progress=False)
    assert steady.notes["noise"]["value"] == 0
    assert not steady.unranked
