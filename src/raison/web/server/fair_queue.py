"""The order of requests: addresses take turns, and so do the clients at an address."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from raison.web.server.calls import ModelRequest


class Client(NamedTuple):
    """An address, and the name of one of several clients there."""

    address: str
    name: str


@dataclass(eq=False, slots=True)
class Waiting:
    """A waiting request. Its future has the answer; a cancelled one is not answered."""

    client: Client
    request: ModelRequest
    future: "Future[bytes]" = field(default_factory=Future)
    since: float = 0.0
    """When it began to wait."""
    begun: float = 0.0
    """When its work began."""
    left: bool = False
    """Whether its client has left."""


class Turns:
    """Waiting requests, in the order in which they are answered."""

    def __init__(self) -> None:
        self._addresses: OrderedDict[str, OrderedDict[str, deque[Waiting]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def of(self, client: Client) -> int:
        """The number of waiting requests of a client."""
        return len(self._own(client))

    def add(self, waiting: Waiting) -> None:
        """Add a request after the others of its client."""
        clients = self._addresses.setdefault(waiting.client.address, OrderedDict())
        clients.setdefault(waiting.client.name, deque()).append(waiting)
        self._count += 1

    def remove(self, waiting: Waiting) -> bool:
        """Withdraw a request; False if it is no longer waiting."""
        waiting_here = self._own(waiting.client)
        if waiting not in waiting_here:
            return False
        waiting_here.remove(waiting)
        self._dropped(waiting.client)
        return True

    def take(self) -> list[Waiting]:
        """The request whose turn it is, and later ones with equal settings, which are answered together with it.

        Only the next request of each client can join, and joining uses up that client's turn.
        """
        batch: list[Waiting] = []
        while first := next((w for w in self._next() if not batch or w.request.joins(batch[0].request)), None):
            queues = self._addresses[first.client.address]
            queues[first.client.name].popleft()
            queues.move_to_end(first.client.name)
            self._addresses.move_to_end(first.client.address)
            self._dropped(first.client)
            batch.append(first)
            if len(batch) >= batch[0].request.together:
                break
        return batch

    def all(self) -> list[Waiting]:
        """All waiting requests."""
        return [w for clients in self._addresses.values() for queue in clients.values() for w in queue]

    def _next(self) -> Iterator[Waiting]:
        """The next request of each client: one from each address, then another from each, and so on."""
        rings = [iter(clients.values()) for clients in self._addresses.values()]
        while rings:
            left = []
            for ring in rings:
                queue = next(ring, None)
                if queue is not None:
                    yield queue[0]
                    left.append(ring)
            rings = left

    def _own(self, client: Client) -> deque[Waiting]:
        clients = self._addresses.get(client.address)
        return deque() if clients is None else clients.get(client.name, deque())

    def _dropped(self, client: Client) -> None:
        self._count -= 1
        clients = self._addresses[client.address]
        if not clients[client.name]:
            del clients[client.name]
        if not clients:
            del self._addresses[client.address]
