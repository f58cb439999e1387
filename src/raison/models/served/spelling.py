"""A continuation as the server's tokens: their ids, and the characters of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from raison.core.errors import AnswerError
from raison.models.served.forced import Continuation, Forced
from raison.models.served.probing import frame_of
from raison.models.served.responses import choices_of, steps_of, text_of
from raison.models.served.server import Server, ServerResponse
from raison.models.served.tokens import ServerTokenizer
from raison.models.tokens.spelling import SEPARATE
from raison.text.segment import CharacterSpan


@dataclass(frozen=True, slots=True)
class Spelled:
    """A continuation, and the characters of each of its tokens in it; `warning` if the boundary is ambiguous."""

    wanted: Continuation
    spans: tuple[CharacterSpan, ...]
    warning: str | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """A number for each token: its id, or one made from its text if the server does not return ids."""
        if self.wanted.ids is not None:
            return self.wanted.ids
        return tuple(_number(self.wanted.text[start:end]) for start, end in self.spans)


async def written(server: Server, prompt: str, new_tokens: int) -> str:
    """The model's continuation of a prompt, with the likeliest token at each step."""
    body: ServerResponse = {**frame_of(prompt, chat=False), "max_tokens": new_tokens, "temperature": 0}
    return text_of(choices_of(await server.complete(body, prompt))[0])


async def written_tokens(server: Server, prompt: str, new_tokens: int) -> Spelled | None:
    """The same with its tokens, if the server returns all of them with their ids."""
    body: ServerResponse = {**frame_of(prompt, chat=False), "max_tokens": new_tokens, "temperature": 0, "logprobs": 1}
    choice = choices_of(await server.complete(body, prompt))[0]
    text = text_of(choice)
    texts: list[str] = []
    ids: list[int | None] = []
    for step in steps_of(choice):
        if "".join(texts) == text:
            break
        texts.append(step.chosen.text)
        ids.append(step.chosen.id)
    known = tuple(number for number in ids if number is not None)
    if not text or "".join(texts) != text or len(known) < len(ids):
        return None
    return Spelled(Continuation(text, known), _spans(texts))


async def spelled(way: Forced, tokens: ServerTokenizer | None, prompt: str, text: str) -> Spelled:
    """The tokens of a given continuation. Raises AnswerError if the server does not return them."""
    if not way.by_id:
        steps = await way.steps(frame_of(prompt, chat=False), prompt, Continuation(text))
        return Spelled(Continuation(text), _spans([step.chosen.text for step in steps]))
    if tokens is None:
        raise AnswerError("the server has no /tokenize, and accepts continuations only as token ids.")
    whole, before = await tokens.of(prompt + text), await tokens.of(prompt)
    count = len(before.ids)
    together = whole.ids[:count] == before.ids and len(whole.ids) > count
    pieces = whole if together else await tokens.of(text)
    texts = None if pieces.texts is None else list(pieces.texts[count if together else 0 :])
    ids = pieces.ids[count:] if together else pieces.ids
    if texts is None or "".join(texts) != text:
        raise AnswerError(
            f"the server's tokens of {text!r:.60} do not cover its characters exactly: some are parts of a character. "
            "Give an output without such characters (output=, answer=)."
        )
    return Spelled(Continuation(text, ids), _spans(texts), None if together else SEPARATE)


def _spans(texts: Sequence[str]) -> tuple[CharacterSpan, ...]:
    spans, place = [], 0
    for text in texts:
        spans.append((place, place + len(text)))
        place += len(text)
    return tuple(spans)


def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")
