"""Finds out from its answers what a server can do, because servers silently ignore options that they do not know."""

from dataclasses import dataclass
from typing import Literal

from raison.core.errors import AnswerError, RefusedError, ServerError
from raison.models.served.forced import Biased, Constrained, Continuation, Echoed, Forced, PromptScored
from raison.models.served.responses import TokenStep, choices_of, steps_of, text_of
from raison.models.served.server import Server, ServerResponse
from raison.models.served.tokens import ServerTokenizer

Tier = Literal["scored", "top-k", "text"]
"""Log-probabilities of any continuation, of the likeliest next tokens, or none at all."""

BEGUN = "The capital of France is"
TOPS = (50, 20, 5, 2, 1)
"""Number of most likely tokens that are requested; a server that allows fewer refuses, or returns fewer."""
TOLERANCE = 0.3
"""Tolerance between two log-probabilities of the same token, requested in different ways."""


@dataclass(frozen=True, slots=True)
class Powers:
    """How to send requests to a server: at most `top` tokens, the way to score a given continuation, and its
    tokenizer."""

    chat: bool
    top: int
    forced: Forced | None
    tokens: ServerTokenizer | None


def frame_of(text: str, chat: bool) -> ServerResponse:
    """The part of a request that holds a prompt."""
    return {"messages": [{"role": "user", "content": text}]} if chat else {"prompt": text}


def next_body(frame: ServerResponse, top: int) -> ServerResponse:
    """A request for the likeliest next tokens."""
    options: ServerResponse = {"logprobs": True, "top_logprobs": top} if "messages" in frame else {"logprobs": top}
    return {**frame, **options, "max_tokens": 1, "temperature": 0}


async def probed(server: Server, chat: bool) -> Powers:
    """Sends about six short requests. Raises ServerError if the server does not complete anything."""
    server_tokens = ServerTokenizer(server)
    tokens = server_tokens if await server_tokens.works() else None
    frame = frame_of(BEGUN, chat)
    step = await _next(server, frame)
    if step is None:
        return Powers(chat, 0, None, tokens)
    way = await _forced(server, frame, step, tokens)
    return Powers(chat, len(step.top), way, tokens)


async def _next(server: Server, frame: ServerResponse) -> TokenStep | None:
    """The next token with as many of the likeliest as the server gives; None if it gives only text."""
    refusal: ServerError | None = None
    for top in TOPS:
        try:
            [choice] = choices_of(await server.complete(next_body(frame, top), BEGUN))[:1]
        except RefusedError as error:
            refusal = error
            if error.status in (401, 403):
                raise
            if error.status != 400 and error.status != 422:
                break
            continue
        steps = steps_of(choice)
        return steps[0] if steps and steps[0].top else None
    try:
        text_of(choices_of(await server.complete({**frame, "max_tokens": 1, "temperature": 0}, BEGUN))[0])
    except RefusedError as error:
        what, other = ("chats", "without") if "messages" in frame else ("texts", "with")
        raise ServerError(
            f"{server.address.base} does not complete {what} ({refusal or error}) Take a prompt {other} `chat`, or "
            "another server."
        ) from None
    return None


async def _forced(
    server: Server, frame: ServerResponse, step: TokenStep, tokens: ServerTokenizer | None
) -> Forced | None:
    """The first way in which the server returns the known log-probability of a token that is not the likeliest."""
    second = next((token for token in step.top if token.text != step.chosen.text and token.text.strip()), None)
    if second is None:
        return None
    ids: tuple[int, ...] | None = (second.id,) if second.id is not None else None
    if ids is None and tokens is not None:
        whole, before = (await tokens.of(BEGUN + second.text)).ids, (await tokens.of(BEGUN)).ids
        ids = whole[len(before) :] if whole[: len(before)] == before else None
    wanted = Continuation(second.text, ids)
    chat = "messages" in frame
    for kind in (Biased,) if chat else (Echoed, PromptScored, Constrained, Biased):
        way: Forced = kind(server)
        if not way.takes(wanted):
            continue
        try:
            steps = await way.steps(frame, BEGUN, wanted)
        except (AnswerError, RefusedError):
            continue
        if abs(sum(one.chosen.logprob for one in steps) - second.logprob) <= TOLERANCE:
            return way
    return None
