"""Parses servers' answers by their shape: tokens with their log-probabilities, and texts.

Three shapes occur. OpenAI's chat and llama.cpp have `logprobs.content`, a list with an object for each token. OpenAI's
first completions, vLLM and SGLang have `logprobs.tokens` with parallel lists. vLLM's `prompt_logprobs` has an object of
token ids for each token of the prompt.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any

from raison.core.errors import AnswerError
from raison.models.served.server import ServerResponse, has_choices

_ROUNDING = 1e-3
"""A log-probability may exceed zero by this much."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token as the server writes it; `id` is None if the server does not return it."""

    text: str
    id: int | None
    logprob: float


@dataclass(frozen=True, slots=True)
class TokenStep:
    """A token that was written or read, and the likeliest tokens in its place."""

    chosen: Token
    top: tuple[Token, ...]


def choices_of(answer: ServerResponse) -> list[ServerResponse]:
    """The answer's choices. Raises AnswerError if there are none."""
    if not has_choices(answer):
        raise AnswerError(f"the server's answer has no choices ({str(answer)!r:.120}).")
    choices: list[ServerResponse] = answer["choices"]
    return choices


def text_of(choice: ServerResponse) -> str:
    """The written text."""
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else choice.get("text")
    if not isinstance(text, str):
        raise AnswerError(f"the server's answer has no text ({str(choice)!r:.120}).")
    return text


def steps_of(choice: ServerResponse) -> tuple[TokenStep, ...]:
    """The tokens with log-probabilities; () if the server gives none. Raises AnswerError for impossible ones."""
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        return ()
    if isinstance(logprobs.get("content"), list):
        return tuple(_step(entry) for entry in logprobs["content"] if isinstance(entry, dict))
    if isinstance(logprobs.get("tokens"), list) and isinstance(logprobs.get("token_logprobs"), list):
        return _parallel(logprobs)
    return ()


def prompt_steps(choice: ServerResponse) -> tuple[TokenStep, ...]:
    """The tokens of the prompt, after the first, by vLLM's `prompt_logprobs`; () without these."""
    logprobs = choice.get("prompt_logprobs")
    if not isinstance(logprobs, list):
        return ()
    steps = []
    for entry in logprobs:
        if not isinstance(entry, dict) or not entry:
            continue
        # The token of the prompt itself comes first.
        number, token = next(iter(entry.items()))
        if not isinstance(token, dict) or not (number.isascii() and number.isdecimal() and len(number) < 20):
            raise AnswerError(f"the server's prompt_logprobs cannot be read ({str(entry)!r:.120}).")
        steps.append(TokenStep(Token(str(token.get("decoded_token")), int(number), _logprob(token.get("logprob"))), ()))
    return tuple(steps)


def _step(entry: ServerResponse) -> TokenStep:
    top = entry.get("top_logprobs")
    others = tuple(_token(one) for one in top if isinstance(one, dict)) if isinstance(top, list) else ()
    return TokenStep(_token(entry), others)


def _token(entry: ServerResponse) -> Token:
    number = entry.get("id")
    text = entry.get("token")
    if not isinstance(text, str):
        raise AnswerError(f"the server's log-probabilities name no token ({str(entry)!r:.120}).")
    return Token(text, number if type(number) is int else None, _logprob(entry.get("logprob")))


def _parallel(logprobs: ServerResponse) -> tuple[TokenStep, ...]:
    tokens, values = logprobs["tokens"], logprobs["token_logprobs"]
    tops = logprobs.get("top_logprobs") or []
    if not isinstance(tops, list):
        raise AnswerError(f"the server's top_logprobs cannot be read ({str(tops)!r:.120}).")
    if len(tokens) != len(values):
        raise AnswerError(f"the server's answer has {len(tokens)} tokens and {len(values)} log-probabilities.")
    steps = []
    for place, (text, value) in enumerate(zip(tokens, values, strict=True)):
        # The first token of an echoed prompt follows nothing.
        if value is None:
            continue
        top = tops[place] if place < len(tops) and isinstance(tops[place], dict) else {}
        others = tuple(Token(str(name), None, _logprob(lp)) for name, lp in top.items())
        steps.append(TokenStep(Token(str(text), None, _logprob(value)), others))
    return tuple(steps)


def _logprob(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # A whole number may be too large for a float.
    if not number or not (value == -math.inf or -sys.float_info.max <= value <= _ROUNDING):
        raise AnswerError(f"the server returned {value!r:.40} as a log-probability.")
    return min(0.0, float(value))
