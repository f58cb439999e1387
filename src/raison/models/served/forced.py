"""The log-probabilities of a given continuation, by the ways in which servers can return them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from raison.core.errors import AnswerError
from raison.models.served.responses import TokenStep, choices_of, prompt_steps, steps_of, text_of
from raison.models.served.server import Server, ServerResponse

BIAS = 100
"""The bias that makes a token certain; OpenAI allows no more."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """A continuation of a prompt: its text, and its tokens if they are known."""

    text: str
    ids: tuple[int, ...] | None = None


class Forced(ABC):
    """One kind of request. `name` is its name in results; `longest` is its maximum number of tokens, None for any."""

    name: ClassVar[str]
    longest: ClassVar[int | None] = None
    by_id: ClassVar[bool] = True
    """Whether it needs the tokens of the continuation."""
    reads: ClassVar[bool] = False
    """Whether the continuation is sent with the prompt, and not written by the server."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def takes(self, wanted: Continuation) -> bool:
        """Whether this continuation can be requested."""
        if wanted.ids is None:
            return not self.by_id and self.longest is None
        return self.longest is None or len(wanted.ids) <= self.longest

    async def steps(
        self, frame: ServerResponse, prompt: str, wanted: Continuation, repeat: int = 0
    ) -> tuple[TokenStep, ...]:
        """The continuation's tokens with their log-probabilities, each after those before it.

        `frame` is the part of the request that holds the prompt. Raises AnswerError if other tokens come back.
        """
        sent = prompt + wanted.text if self.reads else prompt
        answer = await self.server.complete(self._body(frame, sent, wanted), sent, repeat)
        [choice] = choices_of(answer)[:1]
        return self._steps(choice, sent, wanted)

    def known(self, frame: ServerResponse, prompt: str, wanted: Continuation, repeat: int = 0) -> bool:
        """Whether the answer to this request is on disk."""
        sent = prompt + wanted.text if self.reads else prompt
        return self.server.known(self.server.key(self._body(frame, sent, wanted), repeat)) is not None

    @abstractmethod
    def _body(self, frame: ServerResponse, sent: str, wanted: Continuation) -> ServerResponse:
        """The request; `sent` is the text that the server reads."""

    @abstractmethod
    def _steps(self, choice: ServerResponse, sent: str, wanted: Continuation) -> tuple[TokenStep, ...]:
        """The continuation's tokens in an answer. Raises AnswerError."""


@final
class Echoed(Forced):
    """`echo` with `logprobs`, which returns the tokens of the sent text (vLLM, SGLang)."""

    name = "echo"
    by_id = False
    reads = True

    def _body(self, frame: ServerResponse, sent: str, wanted: Continuation) -> ServerResponse:
        return {"prompt": sent, "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True}

    def _steps(self, choice: ServerResponse, sent: str, wanted: Continuation) -> tuple[TokenStep, ...]:
        written, echoed = steps_of(choice), text_of(choice)
        if not written or not echoed.startswith(sent):
            raise AnswerError("the server does not echo the prompt with its log-probabilities.")
        # The last one was written, not read.
        return _at_end(written[:-1], wanted)


@final
class PromptScored(Forced):
    """vLLM's `prompt_logprobs`, with the ids of the prompt's tokens."""

    name = "prompt_logprobs"
    by_id = False
    reads = True

    def _body(self, frame: ServerResponse, sent: str, wanted: Continuation) -> ServerResponse:
        return {"prompt": sent, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}

    def _steps(self, choice: ServerResponse, sent: str, wanted: Continuation) -> tuple[TokenStep, ...]:
        read = prompt_steps(choice)
        if not read:
            raise AnswerError("the server returned no prompt_logprobs.")
        return _at_end(read, wanted)


@final
class Constrained(Forced):
    """A grammar of llama.cpp that allows these tokens alone; log-probabilities are those before it applies."""

    name = "grammar"

    def _body(self, frame: ServerResponse, sent: str, wanted: Continuation) -> ServerResponse:
        ids = _known(wanted)
        rule = " ".join(f"<[{token}]>" for token in ids)
        options = {"max_tokens": len(ids), "temperature": 0, "logprobs": 1, "grammar": f"root ::= {rule}"}
        return {**frame, **options}

    def _steps(self, choice: ServerResponse, sent: str, wanted: Continuation) -> tuple[TokenStep, ...]:
        return _exactly(steps_of(choice), wanted)


@final
class Biased(Forced):
    """`logit_bias`, on servers whose log-probabilities are those before the bias."""

    name = "logit_bias"
    longest = 1

    def _body(self, frame: ServerResponse, sent: str, wanted: Continuation) -> ServerResponse:
        [token] = _known(wanted)
        options = {"logprobs": True, "top_logprobs": 1} if "messages" in frame else {"logprobs": 1}
        return {**frame, **options, "max_tokens": 1, "temperature": 0, "logit_bias": {str(token): BIAS}}

    def _steps(self, choice: ServerResponse, sent: str, wanted: Continuation) -> tuple[TokenStep, ...]:
        return _exactly(steps_of(choice), wanted)


def _known(wanted: Continuation) -> tuple[int, ...]:
    if not wanted.ids:
        raise AnswerError(f"the tokens of {wanted.text!r:.60} are not known.")
    return wanted.ids


def _exactly(steps: tuple[TokenStep, ...], wanted: Continuation) -> tuple[TokenStep, ...]:
    """The steps, if they are the continuation and nothing else."""
    if not _are(steps, wanted):
        raise AnswerError(_other(steps, wanted))
    return steps


def _at_end(steps: tuple[TokenStep, ...], wanted: Continuation) -> tuple[TokenStep, ...]:
    """The last steps that make up the continuation. Raises AnswerError if no token begins at the end of the prompt."""
    if wanted.ids is not None and steps and steps[-1].chosen.id is not None:
        last = steps[len(steps) - len(wanted.ids) :]
        if _are(last, wanted):
            return last
        raise AnswerError(_other(last, wanted))
    text = ""
    for place in range(len(steps) - 1, -1, -1):
        text = steps[place].chosen.text + text
        if text == wanted.text:
            return steps[place:]
        if len(text) >= len(wanted.text):
            break
    raise AnswerError(_other(steps[-3:], wanted))


def _are(steps: Sequence[TokenStep], wanted: Continuation) -> bool:
    ids = [step.chosen.id for step in steps]
    if wanted.ids is not None and None not in ids:
        return ids == list(wanted.ids)
    return "".join(step.chosen.text for step in steps) == wanted.text


def _other(steps: Sequence[TokenStep], wanted: Continuation) -> str:
    shown = " ".join(repr(step.chosen.text) for step in steps) or "nothing"
    return (
        f"the server should have continued with {wanted.text!r:.60}, but its tokens are {shown:.100}: they merge with "
        "the end of the prompt, or the server does not do what it reports."
    )
