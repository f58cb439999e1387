"""From a server's address to a model: connect, find out what the server can do, tokenize the label words as it does."""

from dataclasses import dataclass
from typing import Any

from raison.core.errors import LoadError, UnsupportedError
from raison.core.model import LanguageModel
from raison.models.adapters.blackbox.background import run_in_background
from raison.models.adapters.blackbox.server import ServedClassifier
from raison.models.adapters.blackbox.server_writer import ServedWriter
from raison.models.served.address import Address
from raison.models.served.labels import LabelReader, LabelTokens
from raison.models.served.probing import Powers, frame_of, probed
from raison.models.served.request_settings import Served
from raison.models.served.server import Server, ServerResponse
from raison.models.served.tokens import Pieces, ServerTokenizer
from raison.models.tokens.label_words import Ids, Speller, find_label_ids
from raison.text.prompts import Prompt


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a server, and how it is to be asked."""

    address: str
    served: str | Served | None
    concurrency: int


def from_endpoint(endpoint: Endpoint, prompt: Prompt) -> LanguageModel:
    """A classifier by a prompt. Raises InputError, ServerError, AnswerError; LoadError for label words that do not fit.

    Costs about ten short requests, which are remembered.
    """
    server = connected(endpoint)
    powers = run_in_background(probed(server, prompt.chat is not None))
    reader = LabelReader(server, powers, _labels(prompt, powers), _Frame(prompt))
    check_labels(reader, prompt)
    return ServedClassifier(reader, server.name)


def writer_behind(endpoint: Endpoint) -> ServedWriter:
    """A model that writes. Raises UnsupportedError for a server that scores no given continuation."""
    server = connected(endpoint)
    powers = run_in_background(probed(server, chat=False))
    way = powers.forced
    if way is None or way.longest is not None:
        raise UnsupportedError(
            f"outputs of {server.name} cannot be explained",
            ["its server does not return log-probabilities of a given continuation"],
            "Give a prompt with label words (prompt=), which needs less, or use vLLM, SGLang or llama.cpp.",
        )
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    chats = run_in_background(server.other("/apply-template", body))
    return ServedWriter(server, powers, way, chats is not None and isinstance(chats.get("prompt"), str))


def connected(endpoint: Endpoint) -> Server:
    """The server, and the model on it."""
    settings = endpoint.served if isinstance(endpoint.served, Served) else Served(model=endpoint.served)
    server = Server(Address.read(endpoint.address), settings, endpoint.concurrency)
    run_in_background(server.connect())
    return server


class _Frame:
    """Puts texts into a prompt: the part of a request that holds it, and the string that the server reads."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._rendered = None if prompt.chat is not None else prompt.render(None)

    def __call__(self, text: str) -> tuple[ServerResponse, str]:
        if self._rendered is not None:
            whole = self._rendered.around(text)
            return frame_of(whole, chat=False), whole
        messages = [{"role": one.role, "content": one.text} for one in self._prompt.messages(text)]
        return {"messages": messages}, "".join(message["content"] for message in messages)


def _labels(prompt: Prompt, powers: Powers) -> list[LabelTokens]:
    """The label words, with their tokens after the prompt if the server returns tokens."""
    words: list[tuple[str, str]] = list(prompt.labels.items())
    if powers.tokens is None:
        return [LabelTokens(name, word, None) for name, word in words]
    tokens = powers.tokens
    if prompt.chat is not None:
        return [_alone(name, word, run_in_background(tokens.of(word))) for name, word in words]
    ids = find_label_ids(prompt, prompt.render(None), _speller(tokens))
    return [_label(prompt, *named, of_word, tokens) for named, of_word in zip(words, ids, strict=True)]


def _alone(name: str, word: str, pieces: Pieces) -> LabelTokens:
    """A label word at the beginning of an answer; its first token is requested and checked."""
    return LabelTokens(name, word, pieces.ids if len(pieces.ids) == 1 else None)


def _label(prompt: Prompt, name: str, word: str, ids: Ids, tokens: ServerTokenizer) -> LabelTokens:
    if prompt.scoring != "first":
        return LabelTokens(name, word, ids)
    behind = run_in_background(tokens.of(prompt.render(None).around("...") + word))
    texts = () if behind.texts is None else behind.texts[len(behind.ids) - _count(prompt, word, tokens) :]
    if texts:
        return LabelTokens(name, word, ids, texts[0])
    return LabelTokens(name, word, ids if _count(prompt, word, tokens) == 1 else None)


def _count(prompt: Prompt, word: str, tokens: ServerTokenizer) -> int:
    """The number of tokens of a label word after the prompt."""
    before = prompt.render(None).around("...")
    return len(run_in_background(tokens.of(before + word)).ids) - len(run_in_background(tokens.of(before)).ids)


def _speller(tokens: ServerTokenizer) -> Speller:
    def shown(ids: Any) -> str:
        return f"[{' '.join(map(str, ids))}]"

    return Speller(lambda string: run_in_background(tokens.of(string)).ids, shown, None)


def check_labels(reader: LabelReader, prompt: Prompt) -> None:
    """LoadError for label words that the server's answers cannot distinguish. Takes one text."""
    if reader.tier == "top-k" and any(label.ids is not None and len(label.ids) > 1 for label in reader.labels):
        raise LoadError(
            f"label words of the prompt '{prompt.name}' have several tokens, and {reader.server.address.base} gives "
            'log-probabilities of the next token alone: score the first one (scoring = "first"), or use other words.'
        )
    run_in_background(reader.read("..."))
