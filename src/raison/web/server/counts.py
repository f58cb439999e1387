"""Counters for Prometheus, without any text."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SIZES = (1, 2, 4, 8, 16, 32)


class Counts:
    """The numbers of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "raison_requests", "Requests by path and status", ["path", "status"], registry=self._registry
        )
        self._waiting = Gauge("raison_waiting", "Requests that wait", ["model"], registry=self._registry)
        self._withdrawn = Counter("raison_withdrawn", "Requests whose client left", ["model"], registry=self._registry)
        self._kept = Counter("raison_kept", "Requests whose result was known", registry=self._registry)
        self._kept_bytes = Gauge("raison_kept_bytes", "Bytes of results that are kept", registry=self._registry)
        self._sizes = Histogram(
            "raison_together", "Requests answered by one call", ["model"], registry=self._registry, buckets=SIZES
        )
        self._seconds = Histogram("raison_seconds", "Seconds of a call", ["model"], registry=self._registry)

    def requested(self, path: str, status: int) -> None:
        """A request was answered."""
        self._requests.labels(path, str(status)).inc()

    def waiting(self, model: str, count: int) -> None:
        """`count` requests are waiting now."""
        self._waiting.labels(model).set(count)

    def withdrawn(self, model: str) -> None:
        """A client left."""
        self._withdrawn.labels(model).inc()

    def known(self) -> None:
        """A request was answered from the stored results."""
        self._kept.inc()

    def holds(self, size: int) -> None:
        """Results of this many bytes are kept."""
        self._kept_bytes.set(size)

    def answered(self, model: str, count: int, seconds: float) -> None:
        """A call answered `count` requests."""
        self._sizes.labels(model).observe(count)
        self._seconds.labels(model).observe(seconds)

    def exposition(self) -> str:
        """All numbers in Prometheus' text format."""
        return generate_latest(self._registry).decode()
