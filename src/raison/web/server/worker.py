"""One model with its queue: requests wait, are answered together, or are withdrawn."""

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from raison.core.errors import InputError, RaisonError
from raison.progress import hearing
from raison.web.server.calls import ModelRequest
from raison.web.server.counts import Counts
from raison.web.server.fair_queue import Client, Turns, Waiting
from raison.web.server.settings import Limits

LATELY = 20
"""Number of calls from which the time of a request is estimated."""


class FullError(Exception):
    """Too many requests are waiting. `seconds` is the time until a retry."""

    def __init__(self, line: str, seconds: int) -> None:
        super().__init__(line)
        self.seconds = seconds


class _EndedError(Exception):
    """The work must stop: nobody is waiting any more."""


class _TooSlowError(Exception):
    """The work must stop: it took too long. Not a RaisonError, which may be caught on the way and told as a result."""


class Worker:
    """Answers requests for one model in a separate thread, the only one that calls the model."""

    def __init__(self, name: str, model: Any, limits: Limits, counts: Counts) -> None:
        self.name = name
        self.model = model
        self._limits = limits
        self._counts = counts
        self._turns = Turns()
        self._changed = threading.Condition()
        self._stopping = False
        self._lately: deque[tuple[float, int]] = deque([(0.1, 1)], maxlen=LATELY)
        """Seconds of the last calls, and the number of requests that each answered."""
        self._thread = threading.Thread(target=self._work, name=f"raison {name}", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether requests are being answered."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, even in the middle of the work; waiting requests are cancelled."""
        with self._changed:
            self._stopping = True
            for waiting in self._turns.all():
                self._turns.remove(waiting)
                waiting.future.cancel()
            self._changed.notify()
        self._thread.join()

    def ask(self, client: Client, call: ModelRequest) -> Waiting:
        """Put a request into the queue. Raises FullError."""
        waiting = Waiting(client, call, since=time.monotonic())
        with self._changed:
            if self._turns.of(client) >= self._limits.waiting_each:
                line = (
                    f"{self._limits.waiting_each} of your requests are waiting for {self.name}: wait for their answers."
                )
                raise FullError(line, self._seconds(self._limits.waiting_each))
            if len(self._turns) >= self._limits.waiting:
                line = f"{len(self._turns)} requests are waiting for {self.name}: try again later."
                raise FullError(line, self._seconds(len(self._turns)))
            self._turns.add(waiting)
            self._counts.waiting(self.name, len(self._turns))
            self._changed.notify()
        return waiting

    def withdraw(self, waiting: Waiting) -> None:
        """Withdraw a request: work that nobody else waits for is cancelled."""
        with self._changed:
            self._turns.remove(waiting)
            waiting.future.cancel()
            waiting.left = True
            self._counts.waiting(self.name, len(self._turns))
            self._counts.withdrawn(self.name)

    def _seconds(self, requests: int) -> int:
        """The estimated seconds for `requests` requests, from the last calls."""
        spent, answered = (sum(column) for column in zip(*self._lately, strict=True))
        return max(1, round(requests * spent / max(1, answered)))

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or len(self._turns))
                if self._stopping:
                    return
                batch = [waiting for waiting in self._turns.take() if waiting.future.set_running_or_notify_cancel()]
                self._counts.waiting(self.name, len(self._turns))
            if batch:
                self._answer(batch)

    def _answer(self, batch: Sequence[Waiting]) -> None:
        """Answer requests together; each has its own answer or its own error."""
        began = time.monotonic()
        for waiting in batch:
            waiting.begun = began
        ready = [waiting for waiting in batch if self._fits(waiting)]
        if ready and not self._run(ready) and len(ready) > 1:
            # One of them made the call fail for all.
            for waiting in ready:
                self._run([waiting])
        spent = time.monotonic() - began
        self._lately.append((spent, len(batch)))
        self._counts.answered(self.name, len(batch), spent)

    def _fits(self, waiting: Waiting) -> bool:
        """Whether a request can be answered at all; otherwise it gets its error now."""
        try:
            # A check may predict the text.
            with self._within_limits([waiting]):
                waiting.request.check(self.model, self._limits)
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to this request
            self._fail(waiting, error)
            return False
        return True

    def _run(self, batch: Sequence[Waiting]) -> bool:
        """One call. False if it failed and each of several requests must be tried separately."""
        try:
            with self._within_limits(batch):
                answers = batch[0].request.run(self.model, [waiting.request for waiting in batch])
        except Exception as error:  # noqa: BLE001 - the thread outlives whatever a request did to it
            if len(batch) > 1 and not isinstance(error, _EndedError):
                return False
            for waiting in batch:
                self._fail(waiting, error)
            return True
        for waiting, answer in zip(batch, answers, strict=True):
            waiting.future.set_result(answer)
        return True

    @contextmanager
    def _within_limits(self, batch: Sequence[Waiting]) -> Iterator[None]:
        """Inside, work ends by an error when nobody waits for it any more, or when it takes too long."""
        end = time.monotonic() + self._limits.seconds

        def go_on(_: int) -> None:
            if self._stopping or all(waiting.left for waiting in batch):
                raise _EndedError("nobody waits")
            if time.monotonic() > end:
                raise _TooSlowError

        with hearing(go_on):
            yield

    def _fail(self, waiting: Waiting, error: Exception) -> None:
        if isinstance(error, _TooSlowError):
            error = InputError(
                f"this takes more than the {self._limits.seconds} seconds that this server allows: use another "
                "method, fewer samples or a shorter text."
            )
        # Without its cause, which holds the batch's tensors.
        waiting.future.set_exception(error.with_traceback(None) if isinstance(error, RaisonError) else error)
