"""The server's own tokens, if it has a /tokenize."""

from dataclasses import dataclass
from typing import Any

from raison.core.errors import AnswerError
from raison.models.served.newest import Newest
from raison.models.served.server import Server, ServerResponse

KEPT = 1024
"""The number of strings whose tokens are kept."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A string's tokens, and the text of each if the server returns it."""

    ids: tuple[int, ...]
    texts: tuple[str, ...] | None


class ServerTokenizer:
    """Asks a server for tokens. llama.cpp takes `content`, vLLM and SGLang `prompt`; both read these bodies."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._known = Newest[tuple[str, bool], Pieces](KEPT)

    async def works(self) -> bool:
        """Whether the server has a /tokenize whose answers can be read."""
        try:
            return len((await self.of("one two three")).ids) >= 3
        except AnswerError:
            return False

    async def of(self, text: str, special: bool = False) -> Pieces:
        """The tokens of a string; `special`: including those that the server adds at its beginning."""
        known = self._known.get((text, special))
        if known is None:
            body = {
                "content": text,
                "prompt": text,
                "with_pieces": True,
                "return_token_strs": True,
                "add_special": special,
                "add_special_tokens": special,
            }
            known = _read(await self._server.other("/tokenize", body))
            self._known.add((text, special), known)
        return known


def _read(answer: ServerResponse | None) -> Pieces:
    tokens: Any = None if answer is None else answer.get("tokens")
    if not isinstance(tokens, list):
        raise AnswerError("the server has no /tokenize.")
    if tokens and all(isinstance(one, dict) and type(one.get("id")) is int for one in tokens):
        texts = [one.get("piece") for one in tokens]
        whole = all(isinstance(text, str) for text in texts)
        return Pieces(tuple(one["id"] for one in tokens), tuple(texts) if whole else None)
    if not all(type(one) is int for one in tokens):
        raise AnswerError(f"the server's tokens cannot be read ({str(tokens)!r:.100}).")
    return Pieces(tuple(tokens), None)
