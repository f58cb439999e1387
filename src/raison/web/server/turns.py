"""Who comes next: addresses take turns, and at an address its clients."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from raison.web.server.calls import ModelRequest


class Client(NamedTuple):
    """An address, and the name that one of several clients there gives itself."""

    address: str
    name: str


@dataclass(eq=False, slots=True)
class Waiting:
    """A request that waits. Its future has the answer; one that is cancelled is not answered."""

    client: Client
    asked: ModelRequest
    future: "Future[bytes]" = field(default_factory=Future)
    since: float = 0.0
    """When it began to wait."""
    begun: float = 0.0
    """When its work began."""
    left: bool = False
    """Whether its client has gone."""


class Turns:
    """Requests that wait, in the order in which they are answered."""

    def __init__(self) -> None:
        self._addresses: OrderedDict[str, OrderedDict[str, deque[Waiting]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def of(self, client: Client) -> int:
        """How many requests of a client wait."""
        return len(self._own(client))

    def add(self, waiting: Waiting) -> None:
        """Put a request behind the others of its client."""
        clients = self._addresses.setdefault(waiting.client.address, OrderedDict())
        clients.setdefault(waiting.client.name, deque()).append(waiting)
        self._count += 1

    def remove(self, waiting: Waiting) -> bool:
        """Take a request back; False where it is not waiting any more."""
        own = self._own(waiting.client)
        if waiting not in own:
            return False
        own.remove(waiting)
        self._dropped(waiting.client)
        return True

    def take(self) -> list[Waiting]:
        """The request whose turn it is, and those of other turns that can be answered with it: of equal settings.

        Of each client only the next request can join. Whoever joins has had a turn.
        """
        batch: list[Waiting] = []
        while found := next((w for w in self._next() if not batch or w.asked.joins(batch[0].asked)), None):
            own = self._addresses[found.client.address]
            own[found.client.name].popleft()
            own.move_to_end(found.client.name)
            self._addresses.move_to_end(found.client.address)
            self._dropped(found.client)
            batch.append(found)
            if len(batch) >= batch[0].asked.together:
                break
        return batch

    def all(self) -> list[Waiting]:
        """Every request that waits."""
        return [w for clients in self._addresses.values() for own in clients.values() for w in own]

    def _next(self) -> Iterator[Waiting]:
        """The next request of each client: one of each address, then another one of each, and so on."""
        rings = [iter(clients.values()) for clients in self._addresses.values()]
        while rings:
            left = []
            for ring in rings:
                own = next(ring, None)
                if own is not None:
                    yield own[0]
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
