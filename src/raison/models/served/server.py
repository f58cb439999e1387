"""One server and one of its models: requests are stored, counted and limited."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

from raison.core.errors import AnswerError, RefusedError
from raison.jobs import shared_folder
from raison.models.served.address import Address
from raison.models.served.answer_store import Store, key_of
from raison.models.served.request_settings import Meter, Served, TokenUsage
from raison.models.served.tally import Tally
from raison.models.served.transport import Transport
from raison.paths import cache_folder
from raison.text.beginning import common_length

FILLING = 0.25
"""Share of the work that may go into filling additional caches with the same prefix."""

ServerResponse = dict[str, Any]
"""A JSON object from the server, not yet validated by responses.py."""


def store_path() -> Path:
    """The file in which answers are stored."""
    return cache_folder() / "served" / "answers.sqlite"


@final
class Server:
    """Sends requests for JSON. All calls are made in one event loop (models/adapters/blackbox/background.py)."""

    def __init__(self, address: Address, settings: Served, concurrency: int) -> None:
        self.address, self.settings, self.concurrency = address, settings, concurrency
        tally = Tally(shared_folder.folder(), address.base, repr(settings)) if settings.is_limited else None
        self.meter = Meter(settings, tally)
        self.model = settings.model or ""
        self._transport = Transport(address, settings.timeout, settings.attempts, concurrency)
        self._store = Store(store_path()) if settings.remember else None
        self._facts: object = None
        self._slots: int | None = None

    @property
    def name(self) -> str:
        """The model and its server; for a file, the last part of its path."""
        return f"{self.model.rsplit('/', 1)[-1] if self.model.startswith('/') else self.model} at {self.address.base}"

    async def connect(self) -> None:
        """Find the model. Raises InputError for one that the server does not list, ServerError, AnswerError."""
        listed = await self._models()
        if not self.model:
            if not listed:
                raise AnswerError(f"{self.address.base}/models lists no model: name one (served='NAME').")
            self.model = str(listed[0]["id"])
        self._slots = await self._counted_slots()
        # Includes the server's facts about the model's file, so that another file of the same name gets new requests.
        self._facts = [entry.get("meta") for entry in listed if entry.get("id") == self.model]

    async def _counted_slots(self) -> int | None:
        """The number of llama.cpp's slots, each of which has its own cache; None for other servers."""
        try:
            properties = await self._transport.send(f"{self.address.root}/props", None)
        except RefusedError:
            return None
        slots = properties.get("total_slots") if isinstance(properties, dict) else None
        return slots if type(slots) is int and slots > 0 else None

    def lanes(self, prompts: Sequence[str]) -> int:
        """The best number of simultaneous requests for these prompts, in order.

        If each slot has its own cache, each lane reads the common beginning again, which may cost the share FILLING of
        the rest.
        """
        if self._slots is None or not prompts:
            return self.concurrency
        # In sorted order, the beginning that the first and the last share is shared by all.
        shared = common_length(prompts[0], prompts[-1])
        rest = sum(len(prompt) - shared for prompt in prompts)
        most = min(self.concurrency, self._slots)
        return most if not shared else max(1, min(most, int(FILLING * rest / shared)))

    async def _models(self) -> list[ServerResponse]:
        try:
            listing = await self._transport.send(f"{self.address.base}/models", None)
        except RefusedError as refusal:
            if self.model and refusal.status == 404:
                return []
            raise
        entries = listing.get("data") if isinstance(listing, dict) else None
        if not isinstance(entries, list) or not all(isinstance(one, dict) and "id" in one for one in entries):
            raise AnswerError(f"{self.address.base}/models does not return a list of models: check the address.")
        return entries

    async def complete(self, body: ServerResponse, prompt: str, repeat: int = 0) -> ServerResponse:
        """The answer of /completions, or of /chat/completions for a body with messages.

        `prompt` is the text that the server reads, for the count of tokens. An equal request is answered from disk;
        another `repeat` sends it again. Raises SpentError, RefusedError, ServerError, AnswerError.
        """
        path = f"{self.address.base}/{'chat/completions' if 'messages' in body else 'completions'}"
        key = self.key(body, repeat)
        known = self.known(key)
        if known is not None:
            return known
        new = int(body.get("max_tokens", 1)) * int(body.get("n", 1))
        reserved: list[TokenUsage] = []
        answer = await self._transport.send(
            path,
            {"model": self.model, **body},
            lambda: reserved.append(self.meter.reserve(len(prompt), new)),
            _is_error,
        )
        if not isinstance(answer, dict):
            raise AnswerError(f"{path} returned a {type(answer).__name__} instead of an object.")
        used = _usage(answer)
        if used is not None:
            self.meter.settle(reserved[-1], used, len(prompt))
        if self._store is not None and has_choices(answer):
            self._store.keep(key, answer)
        return answer

    def key(self, body: ServerResponse, repeat: int = 0) -> str:
        """The name of a request in the store."""
        return key_of(self.address.base, self.model, self._facts, body, repeat)

    def known(self, key: str) -> ServerResponse | None:
        """The answer on disk; None if there is none. One without choices, of an older version, is removed."""
        found = None if self._store is None else self._store.find(key)
        if self._store is not None and found is not None and not has_choices(found):
            self._store.remove(key)
            return None
        return found

    async def other(self, path: str, body: ServerResponse) -> ServerResponse | None:
        """The answer of a path that is not OpenAI's, such as /tokenize; None if the server lacks it. It is not
        counted."""
        try:
            answer = await self._transport.send(f"{self.address.root}{path}", {"model": self.model, **body})
        except RefusedError:
            return None
        return answer if isinstance(answer, dict) else None


def has_choices(answer: ServerResponse) -> bool:
    """Whether it holds answers, and not an error or anything else."""
    choices = answer.get("choices")
    return isinstance(choices, list) and bool(choices) and all(isinstance(one, dict) for one in choices)


def _is_error(answer: Any) -> bool:
    return isinstance(answer, dict) and bool(answer.get("error")) and not has_choices(answer)


def _usage(answer: ServerResponse) -> TokenUsage | None:
    """The numbers of tokens read and written, according to the server."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    if any(type(count) is not int or count < 0 for count in counts):
        return None
    return TokenUsage(*counts)  # type: ignore[arg-type]
