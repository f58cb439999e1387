"""Probabilities of label words after a prompt: from a given continuation, the likeliest tokens, or samples."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from raison.core.errors import AnswerError, ServerError
from raison.models.served.forced import Continuation
from raison.models.served.probing import Powers, Tier, next_body
from raison.models.served.responses import Token, TokenStep, choices_of, steps_of, text_of
from raison.models.served.server import Server, ServerResponse
from raison.numerics.statistics.successes import share_interval

IMPOSSIBLE = -9999.0
"""What servers write in place of the log-probability minus infinity, which JSON does not have."""
_SHORT = 3
"""Number of characters of a label word per token that a sample may have, and the number of additional tokens."""


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """A class's word as it follows the prompt, and its tokens there; None if the server does not return them."""

    name: str
    word: str
    ids: tuple[int, ...] | None
    first: str | None = None
    """The text of its first token, if only that is scored."""


@dataclass(frozen=True, slots=True)
class LabelReading:
    """Probabilities of the labels relative to each other, and the maximum error of any of them due to the tier."""

    shares: tuple[float, ...]
    bound: float = 0.0


@final
class LabelReader:
    """Reads the labels after prompts. `frame` turns a text into the part of a request that holds it, and its string."""

    def __init__(
        self,
        server: Server,
        powers: Powers,
        labels: Sequence[LabelTokens],
        frame: Callable[[str], tuple[ServerResponse, str]],
    ) -> None:
        self.server, self.powers, self.labels, self.frame = server, powers, tuple(labels), frame

    @property
    def tier(self) -> Tier:
        """What the probabilities are computed from."""
        if self._whole or (self._single and self.powers.top and self._forcible):
            return "scored"
        return "top-k" if self.powers.top else "text"

    @property
    def description(self) -> str:
        """The tier in words."""
        way = self.powers.forced
        if self.tier == "scored":
            return f"scored (log-probabilities of the label words, by {way.name if way else 'the next token'})"
        if self.tier == "top-k":
            return f"top-k (the {self.powers.top} most likely next tokens)"
        return f"text (shares of {self.server.settings.samples} sampled answers)"

    @property
    def requests(self) -> int:
        """The maximum number of requests for a text."""
        if self._whole:
            return len(self.labels)
        if self.tier == "text":
            return self.server.settings.samples
        return 1 + (len(self.labels) if self.tier == "scored" else 0)

    @property
    def new_tokens(self) -> int:
        """The minimum number of tokens that the server writes for one text."""
        return self.server.settings.samples * self._longest if self.tier == "text" else 1

    async def read(self, text: str, repeat: int = 0) -> LabelReading:
        """The labels after one text. Raises AnswerError if the answer names none or other tokens come back."""
        frame, prompt = self.frame(text)
        if self._whole:
            scores = [await self._forced(frame, prompt, label, repeat) for label in self.labels]
            return LabelReading(_shares(scores))
        if self.tier == "text":
            return await self._sampled(frame, prompt, repeat)
        [choice] = choices_of(await self.server.complete(next_body(frame, self.powers.top), prompt, repeat))[:1]
        steps = steps_of(choice)
        if not steps:
            raise ServerError(
                "the server returned log-probabilities when it was loaded, but no longer does: load it again."
            )
        return await self._next(steps[0], frame, prompt, repeat)

    def known(self, text: str, repeat: int) -> bool:
        """Whether the first request for a text is on disk; if each label is requested separately, all of them."""
        frame, prompt = self.frame(text)
        if self._whole:
            way = self.powers.forced
            assert way is not None, "each label is requested only from a server that scores continuations"
            return all(way.known(frame, prompt, _continuation(label), repeat) for label in self.labels)
        body = self._sampling(frame) if self.tier == "text" else next_body(frame, self.powers.top)
        return self.server.known(self.server.key(body, repeat)) is not None

    def _sampling(self, frame: ServerResponse) -> ServerResponse:
        wanted = self.server.settings.samples
        return {**frame, "max_tokens": self._longest, "temperature": 1.0, "n": wanted}

    @property
    def _single(self) -> bool:
        return all(label.ids is not None and len(label.ids) == 1 for label in self.labels)

    @property
    def _forcible(self) -> bool:
        way = self.powers.forced
        return way is not None and all(way.takes(Continuation(label.word, label.ids)) for label in self.labels)

    @property
    def _whole(self) -> bool:
        """Whether each label word is requested separately."""
        return self._forcible and not (self._single and self.powers.top)

    @property
    def _longest(self) -> int:
        return _SHORT + max(len(label.word) for label in self.labels) // _SHORT

    async def _forced(self, frame: ServerResponse, prompt: str, label: LabelTokens, repeat: int) -> float:
        assert self.powers.forced is not None, "asked for a continuation that the server does not score"
        steps = await self.powers.forced.steps(frame, prompt, _continuation(label), repeat)
        return sum(step.chosen.logprob for step in steps)

    async def _next(self, step: TokenStep, frame: ServerResponse, prompt: str, repeat: int) -> LabelReading:
        """Scores from the likeliest tokens; a label that is not among them is requested, or bounded by the last of
        them."""
        # A token that cannot follow counts as absent.
        top = [token for token in step.top if token.logprob > IMPOSSIBLE]
        logprobs = [self._among(label, top) for label in self.labels]
        missing = [number for number, value in enumerate(logprobs) if value is None]
        if self.tier == "scored":
            for number in missing:
                logprobs[number] = await self._forced(frame, prompt, self.labels[number], repeat)
            return LabelReading(_shares([value for value in logprobs if value is not None]))
        if len(missing) == len(logprobs):
            raise AnswerError(
                f"none of the label words is among the {len(step.top)} most likely tokens after {prompt[-60:]!r}, "
                f"which begin with {step.top[0].text!r:.40}: use label words that the model would write there."
            )
        most = _below(step.top)
        high = _shares([most if value is None else value for value in logprobs])
        low = _shares([-math.inf if value is None else value for value in logprobs])
        return LabelReading(high, max(abs(a - b) for a, b in zip(high, low, strict=True)))

    def _among(self, label: LabelTokens, top: Sequence[Token]) -> float | None:
        """The log-probability of a label's token among the likeliest; None if it is not among them.

        If the label's tokens are not known, all tokens count that begin its word and no other label's.
        """
        if label.ids is not None:
            exact = label.first if label.first is not None else label.word
            matching = [t for t in top if (t.id == label.ids[0] if t.id is not None else t.text == exact)]
        else:
            others = [other.word for other in self.labels if other is not label]
            matching = [t for t in top if t.text.strip() and label.word.startswith(t.text)]
            matching = [t for t in matching if not any(other.startswith(t.text) for other in others)]
        if not matching:
            return None
        highest = max(token.logprob for token in matching)
        return highest + math.log(sum(math.exp(token.logprob - highest) for token in matching))

    async def _sampled(self, frame: ServerResponse, prompt: str, repeat: int) -> LabelReading:
        """Shares of the sampled answers that begin with a label word, of those that begin with any."""
        wanted = self.server.settings.samples
        body = self._sampling(frame)
        texts = [text_of(one) for one in choices_of(await self.server.complete(body, prompt, repeat))]
        # A server that ignores n gives one at a time.
        while len(texts) < wanted:
            # A repeated request draws other answers from a server that keeps to seeds.
            seeded = {**body, "n": 1, "seed": len(texts) + wanted * repeat}
            texts.append(text_of(choices_of(await self.server.complete(seeded, prompt, repeat))[0]))
        named = [number for text in texts[:wanted] if (number := self._named(text)) is not None]
        if not named:
            raise AnswerError(
                f"none of {wanted} answers begins with a label word; the first is {texts[0]!r:.60}. Use label words "
                "that the model answers with, or state in the prompt what to answer."
            )
        counts = [named.count(number) for number in range(len(self.labels))]
        shares = tuple(count / len(named) for count in counts)
        return LabelReading(shares, max(_half_width(count, len(named)) for count in counts))

    def _named(self, text: str) -> int | None:
        """The label whose word an answer begins with, ignoring white space; the longest if several match."""
        words = [label.word.strip() for label in self.labels]
        fitting = [number for number, word in enumerate(words) if text.strip().startswith(word)]
        return max(fitting, key=lambda number: len(words[number]), default=None)


def _continuation(label: LabelTokens) -> Continuation:
    return Continuation(label.first if label.first is not None else label.word, label.ids)


def _shares(scores: Sequence[float]) -> tuple[float, ...]:
    """Softmax. Raises AnswerError if no label is possible."""
    highest = max(scores)
    if highest <= IMPOSSIBLE:
        raise AnswerError(
            "the server says that none of the label words can follow the prompt: use label words that the model would "
            "write there."
        )
    parts = [math.exp(score - highest) for score in scores]
    return tuple(part / sum(parts) for part in parts)


def _below(top: Sequence[Token]) -> float:
    """The highest log-probability of a token that is not among the likeliest."""
    rest = 1 - sum(math.exp(token.logprob) for token in top)
    last = min(token.logprob for token in top)
    return min(last, math.log(rest)) if rest > 0 else last


def _half_width(named: int, count: int) -> float:
    """The distance from a share, `named` of `count` samples, to the farther end of its 95 % interval."""
    low, high = share_interval(named, count)
    return max(high - named / count, named / count - low)
