"""A language model behind a server that writes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import final

from raison.core.errors import AnswerError, InputError, UnsupportedError
from raison.core.inputs.chat import Chat
from raison.core.inputs.parts import PartedText, plain
from raison.core.inputs.unit import PART
from raison.core.model import LanguageModel
from raison.models.adapters.blackbox.background import run_in_background
from raison.models.adapters.blackbox.server_reader import ServedReader, TokenRequest
from raison.models.adapters.writing.writer import EMPTY, ENDED, Writer, check_new_tokens, in_place_of
from raison.models.served.forced import Continuation, Forced
from raison.models.served.newest import Newest
from raison.models.served.probing import Powers, frame_of
from raison.models.served.server import Server
from raison.models.served.spelling import Spelled, spelled, written, written_tokens
from raison.models.tokens.chats import framed
from raison.models.tokens.continuation import ContinuationEncoder, Output, TokenizedPrompt
from raison.models.tokens.word_encoder import WordEncoder
from raison.text.segment import CharacterSpan

KEPT = 1024
"""The number of prompts and outputs whose tokens are kept."""


@final
class ServedWriter(Writer):
    """A model whose server scores given continuations. The tokens of prompts are words; those of outputs its own."""

    max_tokens = None

    def __init__(self, server: Server, powers: Powers, way: Forced, chats: bool) -> None:
        self.server, self.name = server, server.name
        self._way, self._tokens, self._chats = way, powers.tokens, chats
        self._encoder = WordEncoder(1)
        self._spelled = Newest[tuple[str, str], Spelled](KEPT)
        self._words: dict[int, str] = {}

    @property
    def chats(self) -> bool:
        return self._chats

    def prompt(self, prompt: str | PartedText | Chat, untrusted: Sequence[CharacterSpan] = ()) -> TokenizedPrompt:
        if isinstance(prompt, Chat):
            if not self._chats:
                raise InputError(f"{self.name} does not report its chat template: pass the prompt as a string.")
            frame = framed(prompt, lambda chat: run_in_background(self._rendered(chat)))
            prompt = PartedText(frame.text, frame.parts) if frame.parts else frame.text
            return replace(self._read(prompt), regions=frame.regions)
        if not isinstance(plain(prompt), str):
            raise InputError("a prompt is a single text, and this is a pair: join the two.")
        return self._read(prompt)

    def prompts_again(self, text: str, untrusted: Sequence[CharacterSpan] = ()) -> list[TokenizedPrompt]:
        plain = self.prompt(text)
        return [plain, replace(plain, sealed=text)] if self._chats else [plain]

    def written(self, prompt: TokenizedPrompt, ids: Sequence[int]) -> Output:
        for (before, _), known in self._spelled.items():
            if before == prompt.text and known.numbers == tuple(ids):
                return self._output(prompt, known)
        answer = run_in_background(self.server.other("/detokenize", {"tokens": list(ids)}))
        text = None if answer is None else answer.get("content", answer.get("prompt"))
        if not isinstance(text, str) or not text:
            raise InputError(
                f"{self.name} does not return the text of the output's tokens: explain the prompt again before "
                "evaluating."
            )
        return self.output(prompt, text)[0]

    def continuation(self, prompt: TokenizedPrompt, new_tokens: int) -> Output:
        check_new_tokens(new_tokens)
        ids = run_in_background(written_tokens(self.server, prompt.text, new_tokens))
        if ids is not None and self._way.by_id:
            return self._output(prompt, ids)
        text = run_in_background(written(self.server, prompt.text, new_tokens))
        if not text:
            raise InputError(ENDED)
        return self.output(prompt, text)[0]

    def output(self, prompt: TokenizedPrompt, text: str) -> tuple[Output, str | None]:
        if not text:
            raise InputError(EMPTY)
        spelling = run_in_background(spelled(self._way, self._tokens, prompt.text, text))
        return self._output(prompt, spelling), spelling.warning

    def token_after(self, prompt: TokenizedPrompt, output: Output, number: int, word: str | int) -> int:
        written_id, before = output.ids[number], output.text[: output.spans[number][0] - len(prompt.text)]
        if isinstance(word, int):
            token, text = word, self._text_of(prompt, Continuation(before, (*output.ids[:number], word)))
        else:
            spelled_own = output.token_text(number, prompt.text + output.text)
            token, text = self._first_token(prompt, output.ids[:number], before, in_place_of(word, spelled_own))
        if token == written_id:
            raise InputError(
                f"the contrast {word!r} begins with the output token {number} itself: name a word that begins "
                "differently."
            )
        self._words[token] = text
        return token

    def runners_up(self, prompt: TokenizedPrompt, output: Output) -> tuple[int, ...]:
        raise UnsupportedError(
            f"of='margin' without contrast= is not possible on {self.name}",
            ["its server scores given tokens and does not report the most likely alternative at each position"],
            "Name the alternative to the output (contrast=), or use of='log_odds'.",
        )

    def reader(self, rows: ContinuationEncoder, tokens: Sequence[int]) -> LanguageModel:
        """See Writer. Raises AnswerError if the server does not return the output's tokens."""
        spelling = self._spelled.get((rows.prompt.text, rows.output.text))
        if spelling is None:
            spelling = run_in_background(spelled(self._way, self._tokens, rows.prompt.text, rows.output.text))
        return ServedReader(
            self.server, self._way, rows, TokenRequest(spelling.wanted, tuple(tokens), dict(self._words))
        )

    def _text_of(self, prompt: TokenizedPrompt, wanted: Continuation) -> str:
        """The text of a continuation's last token, which the caller names by its number. Raises InputError."""
        if not self._way.by_id:
            raise InputError(f"contrast= is a token id, and {self.name} only accepts text: give a word.")
        steps = run_in_background(self._way.steps(frame_of(prompt.text, chat=False), prompt.text, wanted))
        return steps[-1].chosen.text

    def _first_token(self, prompt: TokenizedPrompt, ids: Sequence[int], before: str, word: str) -> tuple[int, str]:
        """The first token of a word after a part of the output, and its text. Raises InputError."""
        spelling = run_in_background(spelled(self._way, self._tokens, prompt.text, before + word))
        if spelling.numbers[: len(ids)] != tuple(ids):
            raise InputError(f"the contrast {word!r} merges with the output before it: choose a word that does not.")
        start, end = spelling.spans[len(ids)]
        return spelling.numbers[len(ids)], spelling.wanted.text[start:end]

    def _read(self, given: str | PartedText) -> TokenizedPrompt:
        parts = given.parts if isinstance(given, PartedText) else ()
        encoding = self._encoder.encode([given], PART if parts else "token")
        text = str(plain(given))
        ids: list[int] = encoding.input_ids[0].tolist()
        offsets: list[CharacterSpan] = [(start, end) for start, end in encoding.offsets[0].tolist()]
        return TokenizedPrompt(text, tuple(ids), tuple(offsets), ((0, len(text)),), 0, tuple(parts))

    def _output(self, prompt: TokenizedPrompt, spelling: Spelled) -> Output:
        self._spelled.add((prompt.text, spelling.wanted.text), spelling)
        shift = len(prompt.text)
        return Output(spelling.wanted.text, spelling.numbers, tuple((a + shift, b + shift) for a, b in spelling.spans))

    async def _rendered(self, chat: Chat) -> str:
        body = {"messages": [dict(message) for message in chat.messages], "add_generation_prompt": True}
        if chat.documents or chat.tools:
            raise InputError(f"documents and tools cannot be sent to {self.name}: put them into a message instead.")
        answer = await self.server.other("/apply-template", body)
        text = None if answer is None else answer.get("prompt")
        if not isinstance(text, str):
            raise AnswerError(
                f"{self.server.address.base} does not render chats with its template: pass the prompt as a string."
            )
        return text
