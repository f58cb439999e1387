"""The served models with their queues, and the stored results."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raison.core.errors import UnknownNameError
from raison.web.rows.lines import AbsentError
from raison.web.server.answer_cache import AnswerCache
from raison.web.server.calls import ModelRequest
from raison.web.server.counts import Counts
from raison.web.server.fair_queue import Client, Waiting
from raison.web.server.settings import Access, Limits, VisibleFolders
from raison.web.server.worker import Worker

NAME = "x-raison-client"
"""The header with which one of several clients at an address identifies itself."""
LONGEST = 64
"""Number of significant characters of such a name."""


class LeftError(Exception):
    """The client closed the connection."""


@dataclass
class ServedModels:
    """Models by their names; requests can name no other."""

    models: Mapping[str, Any]
    access: Access = field(default_factory=Access)
    limits: Limits = field(default_factory=Limits)
    shown: VisibleFolders = field(default_factory=VisibleFolders)
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self.kept = AnswerCache(self.limits.keep << 20)
        self.workers = {name: Worker(name, model, self.limits, self.counts) for name, model in self.models.items()}

    @property
    def healthy(self) -> bool:
        """Whether every model answers."""
        return all(worker.alive for worker in self.workers.values())

    def start(self) -> None:
        """Begin to answer."""
        for worker in self.workers.values():
            worker.start()

    def stop(self) -> None:
        """Stop the workers; waiting requests are not answered."""
        for worker in self.workers.values():
            worker.stop()

    def worker(self, model: str) -> Worker:
        """Raises AbsentError for a model that is not served."""
        if model not in self.workers:
            raise AbsentError(str(UnknownNameError("model", model[:200], self.workers)))
        return self.workers[model]

    async def answer(self, request: Request, call: ModelRequest) -> Response:
        """The answer, from the stored results or computed when its turn comes.

        Raises FullError, RaisonErrors of the call, and LeftError if the client leaves before.
        """
        key = call.key
        known = self.kept.get(key)
        if known is not None:
            self.counts.known()
            return _timed(known, "kept")
        worker = self.worker(call.body.model)
        waiting = worker.ask(self._client(request), call)
        content = await _unless_left(request, worker, waiting)
        self.kept.put(key, content)
        self.counts.holds(self.kept.size)
        queued, spent = waiting.begun - waiting.since, time.monotonic() - waiting.begun
        return _timed(content, f"wait;dur={1000 * queued:.1f}, run;dur={1000 * spent:.1f}")

    def _client(self, request: Request) -> Client:
        """The client. Behind a proxy, its address is the one that the proxy reports."""
        address = "" if request.client is None else request.client.host
        if self.access.behind_proxy:
            address = request.headers.get("x-forwarded-for", address).rpartition(",")[2].strip()
        return Client(address, request.headers.get(NAME, "")[:LONGEST])


def _timed(content: bytes, timing: str) -> Response:
    """An answer in JSON, with its timing."""
    return Response(content, headers={"server-timing": timing}, media_type="application/json")


async def _unless_left(request: Request, worker: Worker, waiting: Waiting) -> bytes:
    """The answer, unless the client leaves first; then the request is withdrawn."""
    answered: asyncio.Future[Any] = asyncio.wrap_future(waiting.future)
    left: asyncio.Future[Any] = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({answered, left}, return_when=asyncio.FIRST_COMPLETED)
        if not answered.done() or answered.cancelled():
            raise LeftError
        content: bytes = answered.result()
        return content
    finally:
        left.cancel()
        if not answered.done():
            worker.withdraw(waiting)
            # Nobody reads its result.
            answered.cancel()


async def _left(request: Request) -> None:
    """Returns when the client has closed the connection; its body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
