"""What is said of numbers."""

import math

import pytest

import raison
from raison.core.errors import TextTooLongError
from raison.core.results.explanation import OTHER
from raison.core.results.scores import Summary
from raison.report.style import phrases
from tests.tiny import TINY, build_language_model


@pytest.mark.parametrize(
    ("low", "high", "spec", "said"),
    [
        (0.41, 0.583, ".2f", "0.50 [0.41, 0.58]"),
        (-0.1, 1.1, ".0%", "50 % [-10 %, 110 %]"),
        (math.nan, math.nan, ".2f", "0.50"),
        (math.nan, math.nan, "+.1f", "+0.5"),
    ],
)
def test_an_interval_stands_where_it_is_known(low: float, high: float, spec: str, said: str) -> None:
    assert phrases.with_interval(Summary(0.5, low, high, 2), spec) == said


@pytest.mark.parametrize(
    ("value", "places", "said"),
    [(0.25, 2, "+0.25"), (-0.001, 2, "0.00"), (0.0, 3, "0.000"), (-1234567.0, 0, "-1,234,567")],
)
def test_a_score_has_a_sign_unless_it_is_zero(value: float, places: int, said: str) -> None:
    assert phrases.signed(value, places) == said


@pytest.mark.parametrize(
    ("value", "said"), [(-4e-12, "-4.00e-12"), (0.0, "0.000000000"), (3e-8, "+0.000000030"), (2.5e-10, "+2.50e-10")]
)
def test_a_number_that_would_lose_all_digits_has_an_exponent(value: float, said: str) -> None:
    assert phrases.signed(value, phrases.decimals(4e-12)) == said
    assert phrases.number(value, phrases.decimals(4e-12)) == said.lstrip("+")


def test_a_share_below_the_threshold_is_shown_below_it() -> None:
    model = raison.load(lambda texts: [[0.4999, 0.1] for _ in texts], classes=["joy", "grief"], multi_label=True)
    told = phrases.verdict(raison.explain(model, "sad but fun", "occlusion", progress=False))
    assert "no label reaches 50 %" in str(told)
    assert "joy 49.99 %" in str(told)


def test_the_rest_of_the_vocabulary_is_no_prediction() -> None:
    model, tokenizer = build_language_model("gpt2")
    written = raison.explain(raison.load(model, tokenizer), "the sea is", "random", max_new_tokens=2, progress=False)
    token = written.token(0)
    assert token.prediction == OTHER, "a model as sure as this would pass"
    assert token.confidence == token.probabilities[0]
    said = phrases.verdict(token)
    assert (said.lead, said.said, said.rest) == ("Written", token.target, phrases.percent(token.probabilities[0]))


def test_what_is_left_of_a_long_text_is_said_as_its_tokenizer_cuts() -> None:
    given, tokenizer = TINY["bert"]()
    tokenizer.truncation_side = "left"
    model = raison.load(given, tokenizer)
    long = "begin " + "a " * 300 + "end"
    with pytest.raises(TextTooLongError, match=r"to explain its end\.$"):
        raison.explain(model, long, "random")
    told = phrases.truncation(raison.explain(model, long, "random", truncate=True))
    assert told is not None
    assert told.endswith("the model did not read the beginning of the text")
    tokenizer.truncation_side = "right"
    told = phrases.truncation(raison.explain(raison.load(given, tokenizer), ("a", long), "random", truncate=True))
    assert told is not None
    assert told.endswith("the model did not read the end of the text")
