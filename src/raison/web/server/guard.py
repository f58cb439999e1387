"""Checks before any request is read: client, page and size. After every answer: its headers."""

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from h11 import LocalProtocolError

from raison.core.results.printable import printable
from raison.core.settings.reading import dump
from raison.web.server.counts import Counts
from raison.web.server.settings import BODY, VIEW, Access

Scope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PAGES = ("/", "/runs")
"""Paths of pages, to which links on other sites may lead."""
OPEN = (*PAGES, "/healthz")
"""Paths that need no token, in addition to the page's own files, whose paths begin with ASSETS."""
ASSETS = "/assets/"
VIEWED = "/api/view"
BODY_SECONDS = 10.0
"""Maximum time for a body to arrive."""
FORGETTING = 0.5
"""Maximum number of seconds for which an oversized body is read and discarded before it is refused."""
TOO_LONG = f"a request has at most {BODY:,} bytes: shorten its texts."
TOO_MANY = (
    f"explanations that are to be shown have at most {VIEW:,} bytes together: show them one at a time, or explain less "
    "text, or larger units."
)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
GONE = 499
"""The status, in counts and in the log, of a request whose client has left."""
MISTAKEN = "a mistake of the server; its log says where."
LOG = logging.getLogger("raison.serve")


class GoneError(Exception):
    """The connection has ended: by the client, or by uvicorn, which answered invalid HTTP."""


class RequestRefusedError(Exception):
    """A refused request, with its status and its error line."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The part of a request before its body."""

    method: str
    path: str
    headers: dict[str, str]

    @classmethod
    def of(cls, scope: Scope) -> "RequestHead":
        """The head of a request; the last one of several headers with the same name. A second Host is refused."""
        pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        if sum(name == "host" for name, _ in pairs) > 1:
            raise RequestRefusedError(400, "a request has one Host.")
        return cls(scope["method"], scope["path"], dict(pairs))

    @property
    def is_navigation(self) -> bool:
        """Whether the page is being opened, perhaps through a link on another site."""
        return self.method == "GET" and self.path in PAGES and self.headers.get("sec-fetch-mode") == "navigate"


class Guard:
    """An application that only admits allowed requests."""

    def __init__(self, app: App, access: Access, counts: Counts, log_texts: bool = False) -> None:
        self._app = app
        self._access = access
        self._counts = counts
        self._log_texts = log_texts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit a request to the application, or refuse it: one call of the ASGI protocol."""
        if scope["type"] != "http":
            # Only start and stop of the server: there are no other protocols.
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began, answered = time.monotonic(), _HeaderSender(send)
        # The answer to HEAD is that to GET; the server leaves out its body.
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        try:
            asking = RequestHead.of(scope)
            self._check(asking)
            body = await _body(asking, receive)
            if self._log_texts and body:
                LOG.info("body: %s", printable(body.decode(errors="replace")))
            await self._app(asked, _replayed(body, receive), answered.send)
        except GoneError:
            answered.status = GONE
        except RequestRefusedError as refused:
            if refused.status == 413:
                await _forget(receive)
            await answered.refuse(refused.status, str(refused))
        except Exception as error:  # noqa: BLE001 - nothing may end the server, and no answer shows where it happened
            LOG.error("a mistake: %s", place_of(error))
            await answered.refuse(500, MISTAKEN)
        route = getattr(asked.get("route"), "path", "elsewhere")
        self._counts.requested(route, answered.status)
        LOG.info("%.20s %s %d %.0f ms", scope["method"], route, answered.status, 1000 * (time.monotonic() - began))

    def _check(self, asking: RequestHead) -> None:
        host = asking.headers.get("host", "")
        if not self._called(host):
            raise RequestRefusedError(
                403, "this Host is not the server's: if it is, start the server with --allow-host."
            )
        origin = asking.headers.get("origin")
        if origin is not None and urlsplit_host(origin) != host.lower():
            raise RequestRefusedError(
                403, "the request comes from another site (Origin): only this server's page may send it."
            )
        if asking.headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not asking.is_navigation:
            raise RequestRefusedError(
                403, "the request comes from another site (Sec-Fetch-Site): only this server's page may send it."
            )
        if asking.path in OPEN or asking.path.startswith(ASSETS) or self._access.token is None:
            return
        scheme, _, token = asking.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.encode(), self._access.token.encode()):
            raise RequestRefusedError(401, "give the server's token: Authorization: Bearer TOKEN.")

    def _called(self, host: str) -> bool:
        """Whether a Host is a name of this server. A number is: no other site can claim it."""
        name = urlsplit_name(host)
        if name is None:
            return False
        allowed = {"localhost", self._access.host.lower(), *(known.lower() for known in self._access.allow_host)}
        return name in allowed or _is_own(name, self._access.is_local)


class _HeaderSender:
    """Sends an answer with the headers that all have, and knows what was sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def send(self, message: AsgiMessage) -> None:
        """Pass a part of the answer on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            names = {name for name, _ in message["headers"]}
            more = [(name, value) for name, value in HEADERS if name not in names]
            message = {**message, "headers": [*message["headers"], *more]}
        await self._send(message)

    async def refuse(self, status: int, line: str) -> None:
        """Answer with an error, unless an answer has begun."""
        if self.status:
            return
        content = dump({"error": line}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if status in (408, 413):
            # The rest of the body is not read.
            headers.append((b"connection", b"close"))
        try:
            await self.send({"type": "http.response.start", "status": status, "headers": headers})
            await self.send({"type": "http.response.body", "body": content})
        except LocalProtocolError:
            # uvicorn has ended the connection, because invalid HTTP followed.
            self.status = GONE


def place_of(error: BaseException) -> str:
    """The kind of an error and where it was raised, without its message, which may quote a text."""
    places, step = [], error.__traceback__
    while step is not None:
        places.append(f"{step.tb_frame.f_globals.get('__name__')}:{step.tb_lineno}")
        step = step.tb_next
    return f"{type(error).__name__} at {' > '.join(places[-4:])}"


def urlsplit_host(origin: str) -> str | None:
    """The host and port of an Origin; None for none."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def urlsplit_name(host: str) -> str | None:
    """The name in a Host, without its port; None for an invalid Host."""
    try:
        split = urlsplit(f"//{host}")
        port = split.port
    except ValueError:
        return None
    bare = f"[{split.hostname}]" if ":" in (split.hostname or "") else split.hostname or ""
    return split.hostname if host.lower() in (bare, f"{bare}:{port}") else None


def _is_own(name: str, local: bool) -> bool:
    try:
        address = ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or not local


async def _body(asking: RequestHead, receive: Receive) -> bytes:
    """The whole body. Raises RequestRefusedError for one that is too large, too slow or of another type."""
    declared, viewed = asking.headers.get("content-length", "0"), asking.path.startswith(VIEWED)
    most, too_large = (VIEW, TOO_MANY) if viewed else (BODY, TOO_LONG)
    if not declared.isdecimal() or int(declared[:20]) > most:
        raise RequestRefusedError(413, too_large)
    if asking.method == "POST":
        kind = asking.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RequestRefusedError(415, "give the body as application/json.")
    parts, size = list[bytes](), 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise GoneError
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise RequestRefusedError(413, too_large)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise RequestRefusedError(408, f"the body took more than {BODY_SECONDS:g} seconds.") from None


async def _forget(receive: Receive) -> None:
    """Read the rest of a body for a short while: if the connection ended earlier, the answer would be lost."""
    with suppress(TimeoutError):
        async with asyncio.timeout(FORGETTING):
            while (await receive()).get("more_body", False):
                pass


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body at once; then the only further event, that the client leaves."""
    given = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def replayed() -> AsgiMessage:
        return next(given, None) or await receive()

    return replayed
