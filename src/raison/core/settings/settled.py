"""The settings of a method or a metric, made plain and checked when it is made."""

import os
from typing import Any, final

import numpy as np

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
    """Make the values of a frozen record's fields plain, and raise InputError for those that do not fit.

    `owner` is the name of the method or metric, for the message.
    """
    kind: type = type(record)
    for name in fields_of(kind):
        object.__setattr__(record, name, plain(getattr(record, name)))
    check(record, owner)


def plain(value: Any) -> Any:
    """Numbers of other libraries, such as numpy's, as Python's own, paths as text, lists as tuples; others as they are.

    Settings are compared, printed and stored, and do not change.
    """
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else plain_number(value)
