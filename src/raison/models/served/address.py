"""A server's address, and the key that it may be sent. A key is read when it is sent, and never stored."""

import os
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from raison.core.errors import InputError

KEYS = ("RAISON_API_KEY", "OPENAI_API_KEY")
"""Environment variables with keys. The first is sent to every server; the second only if `_is_openai`."""

_OPENAI = "api.openai.com"


def is_address(name: object) -> bool:
    """Whether a model's name is the address of a server."""
    return isinstance(name, str) and name.lower().startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class Address:
    """The base of a server's paths, such as http://127.0.0.1:8080/v1."""

    base: str

    @classmethod
    def read(cls, given: str) -> "Address":
        """Raises InputError for an address with credentials or a query, without repeating these."""
        try:
            parts = urlsplit(given.strip())
            host, port = parts.hostname, parts.port
        except ValueError:
            raise InputError("the server's address cannot be read: give one such as http://host:8080/v1.") from None
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise InputError(
                f"the address of the server {host} contains a user, a password or a query: leave them out, and put the "
                f"key into the environment variable {KEYS[0]}."
            )
        if not host:
            raise InputError(f"'{given:.80}' is not a server's address: give one such as http://host:8080/v1.")
        name = f"[{host}]" if ":" in host else host
        place = name if port is None else f"{name}:{port}"
        path = parts.path.rstrip("/") or "/v1"
        return cls(urlunsplit((parts.scheme.lower(), place, path, "", "")))

    @property
    def root(self) -> str:
        """The base without its version, where llama.cpp and vLLM have the paths that are not OpenAI's."""
        return self.base.removesuffix("/v1")

    def headers(self) -> dict[str, str]:
        """The headers of a request; made for each, so that no object holds the key."""
        key = self._key()
        return {"Authorization": f"Bearer {key}"} if key else {}

    def redacted(self, text: str) -> str:
        """A server's text without the key, which some servers repeat in their errors."""
        for name in KEYS:
            key = os.environ.get(name, "").strip()
            text = text.replace(key, "***") if key else text
        return text

    def _key(self) -> str:
        key = os.environ.get(KEYS[0], "").strip()
        return key or (os.environ.get(KEYS[1], "").strip() if self._is_openai() else "")

    def _is_openai(self) -> bool:
        """Whether the server is OpenAI's own, or the one that OPENAI_BASE_URL names."""
        named = os.environ.get("OPENAI_BASE_URL", "").strip().rstrip("/")
        parts = urlsplit(self.base)
        return self.base == named or (parts.scheme == "https" and parts.hostname == _OPENAI)
