"""The tokens of an output, scored by a server after masked prompts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.asked_again import AskedAgain, Price
from raison.core.capability import Capability
from raison.core.errors import AnswerError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given
from raison.core.inputs.unit import Granularity
from raison.core.model import LanguageModel
from raison.core.results.generation import OTHER
from raison.models.adapters.blackbox.background import run_in_background
from raison.models.adapters.blackbox.function import masked_texts, substitute_of
from raison.models.adapters.blackbox.server import WHY, Keeps
from raison.models.served.concurrency import gathered
from raison.models.served.forced import Continuation, Forced
from raison.models.served.probing import frame_of
from raison.models.served.server import Server, ServerResponse
from raison.models.tokens.continuation import ContinuationEncoder
from raison.numerics.measures.log_probabilities import log_complement

NOTHING = "\n"
"""What replaces an empty prompt: a model reads at least one token before it writes."""
_LOGITS = "its server returns log-probabilities, which match logits only in differences of two tokens"


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """An output as the server spells it, the tokens that are classes, and the texts of contrasts by their numbers."""

    wanted: Continuation
    tokens: tuple[int, ...]
    words: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class _Request:
    """A continuation of `count` tokens after a masked prompt."""

    text: str
    wanted: Continuation
    count: int

    @property
    def frame(self) -> ServerResponse:
        """The part of the request that holds the prompt."""
        return frame_of(self.text, chat=False)


@final
class ServedReader(LanguageModel):
    """The tokens of one output as predictions after masked prompts.

    One request for each masked prompt gives all tokens. A contrast takes one more for each token, after the same words
    of the output; and with `earlier`, each token has masked prompts of its own.
    """

    removals = ("delete", "ellipsis")
    max_tokens = None
    multi_label = False

    def __init__(self, server: Server, way: Forced, rows: ContinuationEncoder, request: TokenRequest) -> None:
        self.server, self.name = server, server.name
        self.way, self._rows, self._asked = way, rows, request
        self.undefined = {} if rows.against is not None else dict.fromkeys(("logit", "margin"), _LOGITS)
        self.capabilities = (_RepeatedTokens(self),)
        output = rows.output
        texts = [output.token_text(place, rows.prompt.text + output.text) for place in range(len(output.ids))]
        named = {**request.words, **dict(zip(output.ids, texts, strict=True))}
        written = [named[token] for token in request.tokens]
        self.classes = (
            *(
                text if written.count(text) == 1 else f"{text} ({token})"
                for text, token in zip(written, request.tokens, strict=True)
            ),
            OTHER,
        )

    @property
    def price(self) -> Price:
        """The price of a masked prompt for a token."""
        output = self._rows.output
        whole = len(self._rows.prompt.text) + len(output.text)
        requests = 1 if self._rows.against is None else 2
        return Price(requests, *self.server.meter.price(whole, requests, len(output.ids) if self.way.by_id else 1))

    def lacks(self, kind: type[Capability]) -> str:
        return f"the model lacks the capability '{kind.name}' ({WHY})"

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool = False) -> Encoding:
        return self._rows.encode(texts, unit, truncate)

    def check_removal(self, removal: str) -> None:
        substitute_of(removal)

    def masked_logits(self, encoding: Encoding, keeps: Keeps, removal: str) -> list[Float[Tensor, "_masks classes"]]:
        return self.request_logits(encoding, keeps, removal, repeat=0)

    def request_logits(
        self, encoding: Encoding, keeps: Keeps, removal: str, repeat: int
    ) -> list[Float[Tensor, "_masks classes"]]:
        """The same; another `repeat` sends the requests again, in the opposite order."""
        texts = [[text or NOTHING for text in row] for row in masked_texts(encoding, keeps, removal)]
        numbers = self._numbers(encoding)
        wanted = {
            request
            for row, number in zip(texts, numbers, strict=True)
            for text in row
            for request in (self._own(text, number), *self._against(text, number))
        }
        ordered = sorted(wanted, key=lambda one: (one.text, one.wanted.text, one.count), reverse=repeat > 0)
        new = [one for one in ordered if not self.way.known(one.frame, one.text, one.wanted, repeat)]
        written = sum(one.count if self.way.by_id else 1 for one in new)
        self.server.meter.foresee([len(one.text) + len(one.wanted.text) for one in new], written)
        values = run_in_background(self._all(ordered, repeat))
        answers = dict(zip(ordered, values, strict=True))
        return [self._logits(answers, row, number) for row, number in zip(texts, numbers, strict=True)]

    async def _all(self, requests: Sequence[_Request], repeat: int) -> list[list[float]]:
        async def one(request: _Request) -> list[float]:
            text, wanted = request.text, request.wanted
            steps = await self.way.steps(request.frame, text, wanted, repeat)
            if len(steps) != request.count:
                raise AnswerError(
                    f"the output {wanted.text!r:.60} is {len(steps)} tokens behind {text[-40:]!r}, and {request.count} "
                    "behind the whole prompt: its beginning merges with the end of the prompt: begin it with a space."
                )
            return [step.chosen.logprob for step in steps]

        lanes = self.server.lanes([request.text for request in requests])
        return await gathered([one(request) for request in requests], lanes)

    def _own(self, text: str, number: int) -> _Request:
        """The request that scores an output token after a masked prompt: with all others, or alone after the earlier
        ones."""
        output = self._rows.output
        if not self._rows.earlier:
            return _Request(text, self._asked.wanted, len(output.ids))
        token_text = output.token_text(number, self._rows.prompt.text + output.text)
        return self._alone(text, token_text, output.ids[number])

    def _against(self, text: str, number: int) -> Iterator[_Request]:
        """The request that scores the token that an output token is contrasted with, in its place."""
        if self._rows.against is None:
            return
        token, output = self._rows.against[number], self._rows.output
        word = self._asked.words[token]
        if self._rows.earlier:
            yield self._alone(text, word, token)
            return
        before = output.text[: output.spans[number][0] - len(self._rows.prompt.text)]
        ids = (*output.ids[:number], token) if self.way.by_id else None
        yield _Request(text, Continuation(before + word, ids), number + 1)

    def _alone(self, text: str, token: str, number: int) -> _Request:
        return _Request(text, Continuation(token, (number,) if self.way.by_id else None), 1)

    def _numbers(self, encoding: Encoding) -> list[int]:
        """The output token of each row of the encoding: a row contains the tokens before its own."""
        first = len(self._rows.prompt.ids)
        return [length - first for length in encoding.lengths]

    def _logits(
        self, answers: Mapping[_Request, Sequence[float]], texts: Sequence[str], number: int
    ) -> Float[Tensor, "masks classes"]:
        logits = torch.full((len(texts), len(self.classes)), -torch.inf, dtype=torch.float64)
        place = -1 if self._rows.earlier else number
        written = torch.tensor([answers[self._own(text, number)][place] for text in texts], dtype=torch.float64)
        logits[:, self._asked.tokens.index(self._rows.output.ids[number])] = written
        rest = log_complement(written)
        if self._rows.against is not None:
            others = [answers[request][-1] for text in texts for request in self._against(text, number)]
            other = torch.tensor(others, dtype=torch.float64)
            logits[:, self._asked.tokens.index(self._rows.against[number])] = other
            # Because of noise, both together may exceed a probability of 1.
            rest = (rest.exp() - other.exp()).clamp_min(0).log()
        logits[:, -1] = rest
        return logits


@final
class _RepeatedTokens(AskedAgain):
    def __init__(self, reader: ServedReader) -> None:
        self._reader = reader

    @property
    def description(self) -> str:
        return f"{self._reader.name}: scored (log-probabilities of the output's tokens, by {self._reader.way.name})"

    @property
    def identity(self) -> list[str]:
        return [self._reader.server.address.base, self._reader.server.model]

    def prices(self, encoding: Encoding) -> list[Price]:
        return [self._reader.price] * len(encoding)

    def again(self, encoding: Encoding, keeps: Keeps, removal: str) -> list[Float[Tensor, "_masks classes"]]:
        return self._reader.request_logits(encoding, keeps, removal, repeat=1)

    def bounds(self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str) -> list[float]:
        return [0.0] * len(encoding)
