"""Every error that a user can cause, each with one clear line: what, why and the way out."""

import difflib
from collections.abc import Iterable, Mapping, Sequence

MISTAKE = "\n  "
"""Separates the mistakes in an error that lists several."""


class RaisonError(Exception):
    """Base of all errors that this library raises on purpose."""


class InputError(RaisonError, ValueError):
    """A text, target or setting is invalid."""


class TextTooLongError(InputError):
    """A text has more tokens than the model can read. `truncatable`: with truncate=True its beginning is explained."""

    def __init__(self, message: str, *, truncatable: bool = False) -> None:
        super().__init__(message)
        self.truncatable = truncatable


class UnknownNameError(InputError):
    """The name of a method, metric, model, label, unit or setting does not exist.

    `also_called` maps other common names, in lower case with underscores, to the known ones; they are suggested.
    """

    def __init__(
        self, kind: str, name: object, known: Iterable[str], also_called: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        choices = sorted(known)
        plain = str(name).strip().lower().replace("-", "_").replace(" ", "_")
        meant = [choice for choice in (also_called or {}).get(plain, ()) if choice in choices]
        short = [choice for choice in choices if choice.startswith(plain)][:4] if len(plain) >= 3 else []
        meant = meant or short or difflib.get_close_matches(str(name), choices, n=1, cutoff=0.5)
        hint = f" Did you mean {' or '.join(repr(choice) for choice in meant)}?" if meant else ""
        super().__init__(f"unknown {kind} '{name}'.{hint} Known: {', '.join(choices) or 'none'}.")


class UnsupportedError(RaisonError):
    """The model cannot do what was asked. The message lists every reason and the way out."""

    def __init__(self, what: str, reasons: Sequence[str], way_out: str = "") -> None:
        text = f"{what}: " + "; ".join(reasons) + "."
        super().__init__(f"{text} {way_out}".strip())
        self.reasons = tuple(reasons)


class ForwardError(UnsupportedError):
    """The model's own forward function fails."""


class NonFiniteError(RaisonError, ArithmeticError):
    """The model returned NaN or infinite numbers."""


class AnswerError(RaisonError, ValueError):
    """A function of the caller's, or a server, returned something unexpected."""


class ServerError(RaisonError):
    """A server refuses a request, or does not answer."""


class RefusedError(ServerError):
    """A server answers with a status that means refusal. `status` is 401, 404, ..."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[type["RefusedError"], tuple[int, str]]:
        """Sent between processes with its status."""
        return type(self), (self.status, str(self))


class UnfitRequestError(RefusedError):
    """A server refuses one request because of its content, such as a prompt that is too long for its model."""


class OutOfMemoryError(RaisonError):
    """Not even one text fits into the device's memory."""


class DataError(RaisonError):
    """A data file is missing, broken or lacks a column."""


class BusyError(DataError):
    """Another process is working in a folder."""


class LoadError(RaisonError):
    """A model or its weights could not be found or read."""


class UnfinishedError(DataError):
    """Work has no result yet: what it has done so far is kept."""


class UnsteadyWarning(UserWarning):
    """The model's answers differ between equal calls."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message that is not empty, or the error's type if it has no message."""
    return next((line for line in map(str.strip, str(error).splitlines()) if line), type(error).__name__)
