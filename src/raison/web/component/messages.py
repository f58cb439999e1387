"""Messages of the component to a notebook's kernel, and what is sent back."""

from collections.abc import Callable, Mapping
from typing import Any

from raison.core.errors import RaisonError

Answer = Callable[[str, Mapping[str, Any]], dict[str, object]]
"""What is asked and its body, to the answer. It may raise RaisonErrors."""


def reply(send: Callable[[dict[str, object]], None], answer: Answer, message: Mapping[str, Any]) -> None:
    """Send the answer to a message, which has an id, what is asked, and its body."""
    try:
        told = answer(message["ask"], message["body"])
    except RaisonError as error:
        send({"id": message["id"], "error": str(error)})
        return
    except KeyboardInterrupt:
        # The kernel was interrupted by hand, which ends the work between two passes or two tokens.
        send({"id": message["id"], "error": "The kernel was interrupted. What was begun is not finished."})
        return
    except Exception as error:
        # The page would wait for ever; the kernel's log has the rest.
        send({"id": message["id"], "error": f"this is a mistake of raison: {type(error).__name__}"})
        raise
    send({"id": message["id"], "answer": told})
