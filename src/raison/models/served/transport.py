"""Requests to one server: repeated if it is busy, given up if it refuses, never redirected to another host."""

import asyncio
import math
import random
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from raison.core.errors import AnswerError, RefusedError, ServerError, UnfitRequestError
from raison.core.settings.reading import json_value
from raison.models.served.address import KEYS, Address

try:
    import httpx2
except ImportError:
    # From its version 2 on, huggingface_hub depends on httpx2, and before on httpx, which has the same interface.
    import httpx as httpx2  # type: ignore[no-redef]

LARGEST = 1 << 25
"""Maximum size of an answer in bytes: about a full distribution over a vocabulary of 250,000 tokens."""
BUSY = (408, 409, 425, 429, 500, 502, 503, 504, 529)
"""Statuses after which retrying the same request may succeed."""
CRASHED = 500
"""The status of a running server that failed on a request."""
IN_A_ROW = 5
"""How many requests in a row may each crash the server at every attempt and still count as faulty themselves."""
UNFIT = (400, 413, 422)
"""Statuses about the content of a request: the server may still answer others."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
"""In seconds, unless the server asks for a longer one."""
LONGEST_ASKED = 600.0
"""The longest pause that a server may ask for; a longer one is an error."""


@dataclass(frozen=True, slots=True)
class _FailedError(Exception):
    """An attempt that may be repeated: why it failed, and how many seconds the server asks to wait."""

    why: str
    pause: float = 0.0
    status: int | None = None


class Transport:
    """Sends JSON and reads JSON. Used inside one event loop, whose connections it keeps."""

    def __init__(self, address: Address, timeout: float, attempts: int, connections: int) -> None:
        self.address = address
        self._attempts = attempts
        self._seconds = timeout
        self._timeout = httpx2.Timeout(timeout, connect=min(timeout, 10.0))
        self._connections = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
        self._client: httpx2.AsyncClient | None = None
        self._draws = random.Random()
        self._crashes: dict[str, int] = {}
        """By path, requests since the last answer that crashed the server; empty before the first answer."""

    async def send(
        self,
        path: str,
        body: dict[str, Any] | None,
        before: Callable[[], None] | None = None,
        is_error: Callable[[Any], bool] | None = None,
    ) -> Any:
        """The server's answer to a POST of `body`, or to a GET without one. `before` is called for every attempt.

        `is_error` says of an answer with the status of success that it is an error: it counts like one with CRASHED.

        Raises RefusedError for a status that no repetition changes, AnswerError for a request at which the server
        crashes every time while it answers others, ServerError when all attempts failed for another reason.
        """
        why, statuses = "", []
        for attempt in range(self._attempts):
            if before is not None:
                before()
            try:
                answer = await self._once(path, body)
                if is_error is not None and is_error(answer):
                    raise _FailedError(f"an error in place of an answer{self._message(answer)}", status=CRASHED)
                self._crashes[path] = 0
                return answer
            except _FailedError as failed:
                why = failed.why
                statuses.append(failed.status)
                if failed.pause > LONGEST_ASKED:
                    raise ServerError(
                        f"{self.address.base} asks to wait {failed.pause:,.0f} seconds ({why}): try again then."
                    ) from None
                if attempt + 1 < self._attempts:
                    await asyncio.sleep(self.pause(attempt, failed.pause))
        tried = "once" if self._attempts == 1 else f"{self._attempts} times"
        if set(statuses) == {CRASHED} and path in self._crashes:
            self._crashes[path] += 1
            if self._crashes[path] <= IN_A_ROW:
                raise AnswerError(f"{self.address.base} cannot answer one request, tried {tried}: {why}.")
        raise ServerError(
            f"{self.address.base} did not answer, tried {tried}: {why}. Check that the server is running; if it is "
            "busy, raise the timeout or the attempts (raison.Served(timeout=, attempts=)) or lower concurrency=."
        )

    def pause(self, attempt: int, requested: float) -> float:
        """The pause before a retry: doubled after each failure, randomised, and at least as long as the server asks
        for."""
        backoff = FIRST_PAUSE * 2**attempt * self._draws.uniform(0.5, 1.0)
        return max(min(LONGEST_PAUSE, backoff), requested)

    async def _once(self, path: str, body: dict[str, Any] | None) -> Any:
        client = self._connected()
        method = "GET" if body is None else "POST"
        try:
            async with client.stream(method, path, json=body, headers=self.address.headers()) as answer:
                # httpx's own limit restarts with every byte. Waiting for a free connection does not count here.
                async with asyncio.timeout(self._seconds):
                    content = await self._read(answer)
        except TimeoutError:
            raise _FailedError(f"no complete answer within {self._seconds:g} seconds") from None
        except httpx2.HTTPError as error:
            # The original exception holds the request with its headers.
            raise _FailedError(f"{type(error).__name__} {error}".strip()) from None
        return self._understood(answer, content)

    def _connected(self) -> "httpx2.AsyncClient":
        if self._client is None:
            # The key would follow a redirection.
            self._client = httpx2.AsyncClient(
                timeout=self._timeout,
                limits=self._connections,
                follow_redirects=False,
                headers={"User-Agent": "raison"},
            )
            weakref.finalize(self, _close, self._client, asyncio.get_running_loop()).atexit = False
        return self._client

    async def _read(self, answer: "httpx2.Response") -> bytes:
        content = bytearray()
        async for part in answer.aiter_bytes():
            content += part
            if len(content) > LARGEST:
                raise AnswerError(f"{self.address.base} sent more than {LARGEST >> 20} MiB: the rest was not read.")
        return bytes(content)

    def _understood(self, answer: "httpx2.Response", content: bytes) -> Any:
        status = answer.status_code
        if status in BUSY:
            pause = requested_pause(answer.headers.get("retry-after"))
            raise _FailedError(f"status {status}{self._said(content)}", pause, status)
        if status in (401, 403):
            raise RefusedError(
                status, f"{self.address.base} rejects the key (status {status}): set the right one in {KEYS[0]}."
            )
        if 300 <= status < 400:
            raise RefusedError(
                status, f"{self.address.base} redirects to another address (status {status}): use that address."
            )
        if status >= 400:
            refused = UnfitRequestError if status in UNFIT else RefusedError
            raise refused(status, f"{self.address.base} refuses the request (status {status}{self._said(content)}).")
        try:
            return json_value(content)
        except ValueError:
            raise _FailedError("an answer that is not JSON") from None

    def _said(self, content: bytes) -> str:
        try:
            return self._message(json_value(content))
        except ValueError:
            return ""

    def _message(self, body: Any) -> str:
        """The server's own error message."""
        error = body.get("error", body) if isinstance(body, dict) else body
        message = error.get("message", "") if isinstance(error, dict) else error
        return (
            f": {self.address.redacted(' '.join(message.split()))[:200]}"
            if isinstance(message, str) and message
            else ""
        )


def _close(client: "httpx2.AsyncClient", loop: asyncio.AbstractEventLoop) -> None:
    """Close the connections of a transport that is no longer used, in the loop that they belong to."""
    if not loop.is_closed():
        asyncio.run_coroutine_threadsafe(client.aclose(), loop)


def requested_pause(header: str | None) -> float:
    """Seconds from a Retry-After header, which holds them or a date; 0 for anything else."""
    if header is None:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0
