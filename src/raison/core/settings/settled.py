"""The settings of a method or a metric, made plain and checked when it is made."""

import json
import os
from typing import Any, final

import numpy as np

from raison.core.errors import InputError, first_line
from raison.core.registry import name_of
from raison.core.settings.declared import refuse_lost_settings
from raison.core.settings.fields import check, fields_of
from raison.core.targets.choices import plain_number


class Settled:
    """A frozen record of settings, a method or a metric: its values are made plain and checked when it is made."""

    def __new__(cls, *_settings: object, **_named: object) -> "Settled":
        # Before __init__, which would not know settings that are lost.
        refuse_lost_settings(cls)
        return super().__new__(cls)

    @final
    def __post_init__(self) -> None:
        settle(self, name_of(self))
        self.consistent()

    def consistent(self) -> None:
        """Raise InputError for what the fields' types and ranges, already checked, cannot say: how settings fit
        together, or names of other methods."""
        return


def settle(record: object, owner: str) -> None:
    """Make the values of a frozen record's fields plain, and raise InputError for those that do not fit, or that JSON
    cannot hold.

    `owner` is the name of the method or metric, for the message.
    """
    kind: type = type(record)
    for name in fields_of(kind):
        object.__setattr__(record, name, plain(getattr(record, name)))
    check(record, owner)
    for name in fields_of(kind):
        if why := no_json(getattr(record, name)):
            found = " ".join(repr(getattr(record, name)).split())
            raise InputError(
                f"{name} of {owner} cannot be {found:.80} ({why}): results state it as JSON, so give "
                "a finite number, a text, true or false, None, or a list of these."
            )


def no_json(value: object) -> str:
    """Why a value cannot be written as JSON; "" if it can."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return first_line(error)
    return ""


def as_json(value: object) -> Any:
    """The value as JSON gives it back: tuples as lists, numbers of other libraries as Python's own.

    Raises TypeError or ValueError for what JSON cannot hold, such as tensors and NaN.
    """
    return json.loads(json.dumps(value, allow_nan=False, default=_own_number))


def _own_number(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def plain(value: Any) -> Any:
    """Numbers of other libraries, such as numpy's, as Python's own, paths as text, lists as tuples; others as they are.

    Settings are compared, printed and stored, and do not change.
    """
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else plain_number(value)
