"""A language model behind a server that writes: its output's tokens, scored after masked prompts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.asked_again import AskedAgain, Price
from raison.core.capability import Capability
from raison.core.errors import AnswerError, InputError, UnsupportedError
from raison.core.inputs.chat import Chat
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given, PartedText, plain
from raison.core.inputs.unit import PART, Granularity
from raison.core.model import LanguageModel
from raison.core.results.generation import OTHER
from raison.models.adapters.blackbox.background import run_in_background
from raison.models.adapters.blackbox.function import masked_texts
from raison.models.adapters.blackbox.server import WHY, Keeps
from raison.models.adapters.writing.writer import Writer
from raison.models.served.forced import Forced, Wanted
from raison.models.served.probing import Powers, frame_of
from raison.models.served.server import Server
from raison.models.served.spelling import Spelled, spelled, written, written_tokens
from raison.models.served.together import gathered
from raison.models.tokens.chats import framed
from raison.models.tokens.continuation import ContinuationEncoder, Output, Prompt
from raison.models.tokens.words import WordEncoder
from raison.text.segment import Span

NOTHING = "\n"
"""What a prompt is of which nothing is left: a model reads at least one token before it writes."""
_CONTRAST = "its server scores one continuation at a time, and no others in its place"
_WAY_OUT = "Leave out contrast= and of='margin', or load the weights here."


@final
class ServedWriter(Writer):
    """A model whose server scores given continuations. The tokens of prompts are words; those of outputs its own."""

    max_tokens = None

    def __init__(self, server: Server, powers: Powers, way: Forced, chats: bool) -> None:
        self.server, self.name = server, server.name
        self._way, self._tokens, self._chats = way, powers.tokens, chats
        self._encoder = WordEncoder(1)
        self._spelled: dict[tuple[str, str], Spelled] = {}

    @property
    def chats(self) -> bool:
        return self._chats

    def prompt(self, prompt: str | PartedText | Chat) -> Prompt:
        if isinstance(prompt, Chat):
            if not self._chats:
                raise InputError(f"{self.name} tells no chat template: pass the prompt as a string.")
            found = framed(prompt, lambda chat: run_in_background(self._rendered(chat)))
            prompt = PartedText(found.text, found.parts) if found.parts else found.text
            return replace(self._read(prompt), regions=found.regions)
        if not isinstance(plain(prompt), str):
            raise InputError("a prompt is one text, and this is a pair: join the two.")
        return self._read(prompt)

    def prompts_again(self, text: str) -> list[Prompt]:
        plain = self.prompt(text)
        return [plain, replace(plain, sealed=text)] if self._chats else [plain]

    def written(self, prompt: Prompt, ids: Sequence[int]) -> Output:
        for (before, _), known in self._spelled.items():
            if before == prompt.text and known.numbers == tuple(ids):
                return self._output(prompt, known)
        answer = run_in_background(self.server.other("/detokenize", {"tokens": list(ids)}))
        text = None if answer is None else answer.get("content", answer.get("prompt"))
        if not isinstance(text, str) or not text:
            raise InputError(
                f"{self.name} does not tell the text of an output's tokens: explain it again, and then judge."
            )
        return self.output(prompt, text)[0]

    def continuation(self, prompt: Prompt, new_tokens: int) -> Output:
        if new_tokens < 1:
            raise InputError(f"max_new_tokens cannot be {new_tokens}: give a whole number from 1 on.")
        found = run_in_background(written_tokens(self.server, prompt.text, new_tokens))
        if found is not None and self._way.by_id:
            return self._output(prompt, found)
        text = run_in_background(written(self.server, prompt.text, new_tokens))
        if not text:
            raise InputError("the model ends the text right after the prompt: give the output to explain (output=).")
        return self.output(prompt, text)[0]

    def output(self, prompt: Prompt, text: str) -> tuple[Output, str | None]:
        if not text:
            raise InputError("the output is empty: there is no token to explain.")
        found = run_in_background(spelled(self._way, self._tokens, prompt.text, text))
        return self._output(prompt, found), found.warning

    def token_after(self, prompt: Prompt, output: Output, number: int, word: str | int) -> int:
        raise UnsupportedError(f"contrast= is not possible on {self.name}", [_CONTRAST], _WAY_OUT)

    def runners_up(self, prompt: Prompt, output: Output) -> tuple[int, ...]:
        raise UnsupportedError(f"of='margin' is not possible on {self.name}", [_CONTRAST], _WAY_OUT)

    def reader(self, rows: ContinuationEncoder, tokens: Sequence[int]) -> LanguageModel:
        """See Writer. Raises UnsupportedError where earlier tokens of the output are to be scored."""
        if rows.earlier:
            raise UnsupportedError(f"earlier= is not possible on {self.name}", [_CONTRAST], "Leave out earlier=.")
        found = self._spelled.get((rows.prompt.text, rows.output.text))
        if found is None:
            found = run_in_background(spelled(self._way, self._tokens, rows.prompt.text, rows.output.text))
        return ServedReader(self.server, self._way, (rows, found.wanted), tokens)

    def _read(self, given: str | PartedText) -> Prompt:
        parts = given.parts if isinstance(given, PartedText) else ()
        encoding = self._encoder.encode([given], PART if parts else "token")
        text = str(plain(given))
        ids: list[int] = encoding.input_ids[0].tolist()
        offsets: list[Span] = [(start, end) for start, end in encoding.offsets[0].tolist()]
        return Prompt(text, tuple(ids), tuple(offsets), ((0, len(text)),), 0, tuple(parts))

    def _output(self, prompt: Prompt, found: Spelled) -> Output:
        self._spelled[prompt.text, found.wanted.text] = found
        shift = len(prompt.text)
        return Output(found.wanted.text, found.numbers, tuple((a + shift, b + shift) for a, b in found.spans))

    async def _rendered(self, chat: Chat) -> str:
        body = {"messages": [dict(message) for message in chat.messages], "add_generation_prompt": True}
        if chat.documents or chat.tools:
            raise InputError(f"documents and tools cannot be sent to {self.name}: put them into a message.")
        answer = await self.server.other("/apply-template", body)
        text = None if answer is None else answer.get("prompt")
        if not isinstance(text, str):
            raise AnswerError(f"{self.server.address.base} does not put this chat into its template.")
        return text


@final
class ServedReader(LanguageModel):
    """The tokens of one output as predictions after masked prompts: one request for each masked prompt."""

    removals = ("delete", "ellipsis")
    max_tokens = None
    multi_label = False

    def __init__(
        self, server: Server, way: Forced, rows: tuple[ContinuationEncoder, Wanted], tokens: Sequence[int]
    ) -> None:
        self.server, self.name = server, server.name
        self.way, (self._rows, self._wanted), self._tokens = way, rows, tuple(tokens)
        self.undefined = dict.fromkeys(("logit", "margin"), _CONTRAST)
        self.capabilities = (_Again(self),)
        output = self._rows.output
        texts = [output.token_text(place, self._rows.prompt.text + output.text) for place in range(len(output.ids))]
        named = dict(zip(output.ids, texts, strict=True))
        own = [named[token] for token in self._tokens]
        self.classes = (
            *(text if own.count(text) == 1 else f"{text} ({token})" for text, token in zip(own, tokens, strict=True)),
            OTHER,
        )

    @property
    def price(self) -> tuple[int, float]:
        """Tokens and cost of one masked prompt."""
        output = self._rows.output
        whole = len(self._rows.prompt.text) + len(output.text)
        return self.server.meter.price(whole, 1, len(output.ids) if self.way.by_id else 1)

    def lacks(self, kind: type[Capability]) -> str:
        return f"the model lacks the capability '{kind.name}' ({WHY})"

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool = False) -> Encoding:
        return self._rows.encode(texts, unit, truncate)

    def masked_logits(self, encoding: Encoding, keeps: Keeps, removal: str) -> list[Float[Tensor, "_masks classes"]]:
        return self.asked(encoding, keeps, removal, repeat=0)

    def asked(
        self, encoding: Encoding, keeps: Keeps, removal: str, repeat: int
    ) -> list[Float[Tensor, "_masks classes"]]:
        """The same; another `repeat` asks anew, in the opposite order."""
        texts = [[text or NOTHING for text in row] for row in masked_texts(encoding, keeps, removal)]
        different = sorted({text for row in texts for text in row}, reverse=repeat > 0)
        self.server.meter.foresee([len(text) + len(self._wanted.text) for text in different], 1)
        values = run_in_background(self._all(different, repeat))
        found = dict(zip(different, values, strict=True))
        numbers = self._numbers(encoding)
        return [
            self._logits(np.array([found[text][number] for text in row]), self._rows.output.ids[number])
            for row, number in zip(texts, numbers, strict=True)
        ]

    async def _all(self, texts: Sequence[str], repeat: int) -> list[list[float]]:
        async def one(text: str) -> list[float]:
            steps = await self.way.steps(frame_of(text, chat=False), text, self._wanted, repeat)
            if len(steps) != len(self._rows.output.ids):
                raise AnswerError(
                    f"the output {self._wanted.text!r:.60} is {len(steps)} tokens behind {text[-40:]!r}, and "
                    f"{len(self._rows.output.ids)} behind the whole prompt: its beginning melts into the prompt's end."
                )
            return [step.chosen.logprob for step in steps]

        return await gathered([one(text) for text in texts], self.server.lanes(texts))

    def _numbers(self, encoding: Encoding) -> list[int]:
        """Which token of the output each row of the encoding stands for: a row has those before its own."""
        first = len(self._rows.prompt.ids)
        return [length - first for length in encoding.lengths]

    def _logits(self, logprobs: Float[np.ndarray, " masks"], token: int) -> Float[Tensor, "masks classes"]:
        found = torch.full((len(logprobs), len(self.classes)), -torch.inf, dtype=torch.float64)
        own = torch.from_numpy(logprobs.reshape(-1))
        found[:, self._tokens.index(token)] = own
        # log(1 - p), exact for small and for large p.
        found[:, -1] = torch.where(own > -0.7, (-torch.expm1(own)).log(), torch.log1p(-own.exp()))
        return found


@final
class _Again(AskedAgain):
    def __init__(self, reader: ServedReader) -> None:
        self._reader = reader

    @property
    def told(self) -> str:
        return f"{self._reader.name}: scored (log-probabilities of the output's tokens, by {self._reader.way.name})"

    @property
    def identity(self) -> list[str]:
        return [self._reader.server.address.base, self._reader.server.model]

    def prices(self, encoding: Encoding) -> list[Price]:
        return [Price(1, *self._reader.price)] * len(encoding)

    def again(self, encoding: Encoding, keeps: Keeps, removal: str) -> list[Float[Tensor, "_masks classes"]]:
        return self._reader.asked(encoding, keeps, removal, repeat=1)

    def bounds(self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str) -> list[float]:
        return [0.0] * len(encoding)
