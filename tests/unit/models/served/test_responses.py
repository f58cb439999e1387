"""Answers of any shape: tokens with their log-probabilities, or one line."""

from typing import Any

import pytest

from raison.core.errors import AnswerError
from raison.models.served.responses import prompt_steps, steps_of


@pytest.mark.parametrize("key", ["\u00b2", "x", "-1", "9" * 30])
def test_tokens_of_a_prompt_are_numbers(key: str) -> None:
    with pytest.raises(AnswerError, match="prompt_logprobs cannot be read"):
        prompt_steps({"prompt_logprobs": [None, {key: {"logprob": -1.0, "decoded_token": "a"}}]})


@pytest.mark.parametrize("value", [-(10**400), 10**400, float("nan"), 0.1, True, "-1"])
def test_impossible_log_probabilities_are_refused(value: Any) -> None:
    with pytest.raises(AnswerError, match="as a log-probability"):
        steps_of({"logprobs": {"content": [{"token": "a", "logprob": value}]}})


def test_a_token_that_cannot_follow_has_no_probability() -> None:
    [step] = steps_of({"logprobs": {"content": [{"token": "a", "logprob": -float("inf")}]}})
    assert step.chosen.logprob == -float("inf")


@pytest.mark.parametrize("top", [{"0": {"a": -1.0}}, 5, "ab"])
def test_the_likeliest_tokens_are_a_list(top: Any) -> None:
    with pytest.raises(AnswerError, match="top_logprobs cannot be read"):
        steps_of({"logprobs": {"tokens": ["a"], "token_logprobs": [-1.0], "top_logprobs": top}})
