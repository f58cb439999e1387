"""Checks of a function on a real text, from its answers alone."""

from collections.abc import Callable

import numpy as np

from raison.core.errors import RaisonError
from raison.core.inputs.unit import Text
from raison.models.adapters.blackbox.function import BlackBox
from raison.models.adapters.checks.determinism import change
from raison.models.adapters.checks.selfcheck import Checked, SelfCheckFinding

CLOSE = 1e-5


def check_function(model: BlackBox, text: Text, other: Text) -> list[SelfCheckFinding]:
    """Check on two texts that a function behaves as expected; about six calls."""
    nothing: Text = ("", "") if model.pairs else ""
    return [
        _finding("its outputs have the required form", lambda: _agreed(model, (text, other))),
        _finding("equal calls give equal answers", lambda: _repeated(model, text)),
        _finding("a text gets the same output alone and in a batch", lambda: _alone(model, (text, other))),
        _finding("a text without words is accepted", lambda: _agreed(model, (nothing,))),
    ]


def _finding(name: str, check: Callable[[], Checked]) -> SelfCheckFinding:
    try:
        checked = check()
        return SelfCheckFinding(name, checked.passed, checked.detail)
    except RaisonError as error:
        return SelfCheckFinding(name, False, str(error))
    except Exception as error:  # noqa: BLE001 - the function is the caller's, and any error of it is what is looked for
        return SelfCheckFinding(name, False, f"{type(error).__name__}: {error}")


def _agreed(model: BlackBox, texts: tuple[Text, ...]) -> Checked:
    rows = model.asking.answers(texts)
    return Checked(True, " / ".join(", ".join(f"{number:.3g}" for number in row[:4]) for row in rows))


def _repeated(model: BlackBox, text: Text) -> Checked:
    largest = change(model, model.encode([text], "word"))
    return Checked(largest == 0, f"an answer differs by {largest:.1e}" if largest else "yes")


def _alone(model: BlackBox, texts: tuple[Text, ...]) -> Checked:
    together = model.asking.answers(texts)
    alone = np.concatenate([model.asking.answers([text]) for text in texts])
    largest = float(np.abs(together - alone).max())
    close = largest <= CLOSE * max(1.0, float(np.abs(alone).max()))
    return Checked(close, f"largest difference {largest:.1e}")
