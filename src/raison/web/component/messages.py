"""Messages of the component to a notebook's kernel, and their answers."""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from threading import Lock, Thread
from typing import Any

from raison.core.errors import RaisonError, TextTooLongError
from raison.progress import hearing

Respond = Callable[[str, Mapping[str, Any]], dict[str, object]]
"""From the name of a request and its body to the answer. It may raise RaisonErrors."""
SendMessage = Callable[[dict[str, object]], None]


class _DroppedError(Exception):
    """Nobody waits for the answer any more."""


class Desk:
    """Answers messages one after the other, and cancels work between two passes when nobody is waiting for it.

    A kernel reads no message while it computes. If it has a loop, the work is done in another thread, and the loop
    sends the answer; otherwise the kernel answers at once, and a message that cancels another comes too late.
    """

    def __init__(self) -> None:
        self._wanted: set[str] = set()
        self._one_by_one = Lock()

    def hear(self, message: Mapping[str, Any], send: SendMessage, answer: Respond) -> None:
        """Answer a request, or cancel an earlier one; `send` is called in the thread that calls this."""
        if message.get("drop"):
            self._wanted.discard(message["id"])
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            reply(send, answer, message)
            return
        self._wanted.add(message["id"])

        def tell(message: dict[str, object]) -> None:
            loop.call_soon_threadsafe(send, message)

        work = partial(self._work, message, tell, answer)
        # A kernel that ends does not wait for the thread.
        Thread(target=copy_context().run, args=(work,), daemon=True).start()

    def _work(self, message: Mapping[str, Any], send: SendMessage, answer: Respond) -> None:
        def go_on(_: int) -> None:
            if message["id"] not in self._wanted:
                raise _DroppedError

        with self._one_by_one, hearing(go_on):
            try:
                go_on(0)
                reply(send, answer, message)
            except _DroppedError:
                return
            finally:
                self._wanted.discard(message["id"])


def truncatable(error: RaisonError) -> bool:
    """Whether the request would be answered with `truncate`."""
    return isinstance(error, TextTooLongError) and error.truncatable


def reply(send: SendMessage, answer: Respond, message: Mapping[str, Any]) -> None:
    """Send the answer to a message, which has an id, the name of the request, and its body."""
    try:
        result = answer(message["ask"], message["body"])
    except RaisonError as error:
        send({"id": message["id"], "error": str(error), "truncatable": truncatable(error)})
        return
    except KeyboardInterrupt:
        # The user interrupted the kernel, which ends the work between two passes or two tokens.
        send({"id": message["id"], "error": "The kernel was interrupted. What was begun is not finished."})
        return
    except _DroppedError:
        raise
    except Exception as error:
        # Without an answer, the page would wait forever; the kernel's log has the details.
        send({"id": message["id"], "error": f"this is a mistake of raison: {type(error).__name__}"})
        raise
    send({"id": message["id"], "answer": result})
