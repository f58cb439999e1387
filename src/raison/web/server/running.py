"""A server at an address, until it is interrupted."""

import asyncio
import logging
import socket
from collections.abc import Callable

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from raison.web.server.app import application
from raison.web.server.guard import LOG
from raison.web.server.served import ServedModels
from raison.web.server.settings import Access

HEAD_SECONDS = 5.0
"""Maximum time in seconds for the head of a request to arrive; in effect up to twice as long."""
HEAD = 1 << 14
"""Maximum number of bytes of such a head."""
CONNECTIONS = 2000
"""Maximum number of simultaneous connections; further ones get the status 503."""
GRACE = 5
"""Seconds for pending requests to finish when the server stops."""


class Patient(H11Protocol):
    """uvicorn's protocol with a timeout for the head of a request."""

    _idle_since: RequestResponseCycle | str | None = ""
    """The last request's cycle when the connection was seen without a request; "" if it was not."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()

    def _look(self) -> None:
        """Close the connection if no request has begun since the last check."""
        if self.transport.is_closing():
            return
        idle = self.conn.their_state is h11.IDLE
        if idle and self._idle_since is self.cycle:
            self.transport.close()
            return
        self._idle_since = self.cycle if idle else ""
        self.loop.call_later(HEAD_SECONDS, self._look)


def listening(access: Access) -> socket.socket:
    """A socket at the address. Raises OSError, for example if the port is in use."""
    family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
    return socket.create_server((access.host, access.port), family=family, backlog=2048)


def run(served: ServedModels, ready: Callable[[str], None]) -> None:
    """Serve until an interrupt. `ready` is called with the page's address. Raises OSError if the address is in use."""
    held = listening(served.access)
    server = server_of(served)
    host = f"[{served.access.host}]" if ":" in served.access.host else served.access.host
    _log_here()
    ready(f"http://{host}:{held.getsockname()[1]}/")
    server.run(sockets=[held])


def server_of(served: ServedModels) -> uvicorn.Server:
    """uvicorn with our settings."""
    config = uvicorn.Config(
        application(served),
        http=Patient,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=HEAD,
    )
    return uvicorn.Server(config)


def _log_here() -> None:
    """Log to stderr: requests without their texts, and uvicorn's warnings."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    for logger, level in ((LOG, logging.INFO), (logging.getLogger("uvicorn"), logging.WARNING)):
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False
