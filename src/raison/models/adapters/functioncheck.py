"""Checks of a function on a real text, from its answers alone."""

from collections.abc import Callable

import numpy as np

from raison.core.errors import RaisonError
from raison.core.unit import Text
from raison.models.adapters.blackbox import BlackBox
from raison.models.adapters.determinism import change
from raison.models.adapters.selfcheck import Finding

CLOSE = 1e-5


def check_function(model: BlackBox, text: Text, other: Text) -> list[Finding]:
    """Check on two texts what is expected of a function; about six calls."""
    checks: list[tuple[str, Callable[[], tuple[bool, str]]]] = [
        ("its answers are as agreed", lambda: _agreed(model, (text, other))),
        ("equal calls give equal answers", lambda: _repeated(model, text)),
        ("a text is answered alone as among others", lambda: _alone(model, (text, other))),
        ("a text without words is answered", lambda: _agreed(model, (("", "") if model.pairs else "",))),
    ]
    return [_finding(name, check) for name, check in checks]


def _finding(name: str, check: Callable[[], tuple[bool, str]]) -> Finding:
    try:
        return Finding(name, *check())
    except RaisonError as error:
        return Finding(name, False, str(error))
    except Exception as error:  # noqa: BLE001 - the function is the caller's, and any error of it is what is looked for
        return Finding(name, False, f"{type(error).__name__}: {error}")


def _agreed(model: BlackBox, texts: tuple[Text, ...]) -> tuple[bool, str]:
    rows = model.asking.answers(texts)
    return True, " / ".join(", ".join(f"{number:.3g}" for number in row[:4]) for row in rows)


def _repeated(model: BlackBox, text: Text) -> tuple[bool, str]:
    largest = change(model, model.encode([text], "word"))
    return largest == 0, f"an answer differs by {largest:.1e}" if largest else "yes"


def _alone(model: BlackBox, texts: tuple[Text, Text]) -> tuple[bool, str]:
    together = model.asking.answers(texts)
    alone = np.concatenate([model.asking.answers([text]) for text in texts])
    largest = float(np.abs(together - alone).max())
    return largest <= CLOSE * max(1.0, float(np.abs(alone).max())), f"largest difference {largest:.1e}"
