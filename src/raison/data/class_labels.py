"""Labels as a file or a list writes them, as classes of a model."""

import re
from collections.abc import Sequence

from raison.core.errors import InputError
from raison.data.dataset import Dataset, Row
from raison.data.rows import typed_labels

LONGEST = 9
"""Maximum number of digits of a number that may count classes."""
_NUMBERS = {"True": "1", "False": "0"}
_WHOLE = re.compile(r"^(\d+)\.0+$")


def labels_as_classes(labels: Sequence[str], classes: tuple[str, ...], name: str = "labels") -> list[str | None]:
    """The class of each label, None for "", which is none.

    Words are classes in any case, and numbers are classes as in `Dataset.class_indices`; 1.0, which tables write, is
    the number 1, as True is, if these are no classes themselves. Raises InputError, which names the data and the first
    label that is no class.
    """
    plain = _plain(labels, classes)
    rows = typed_labels(tuple(Row("", label, number) for number, label in enumerate(plain) if label))
    indices = iter(Dataset(name, rows).class_indices(classes))
    return [classes[next(indices)] if label else None for label in plain]


def known_classes(labels: Sequence[str], classes: tuple[str, ...]) -> tuple[list[str | None], str]:
    """The same, with None for a label that is no class, and why the first of them is none, "" if all are.

    Where any label is the name of a class, all others have to be. Numbers are none if they could count the classes
    from 0 or from 1.
    """
    names = {name.lower() for name in classes}
    plain = _plain(labels, classes)
    named = any(label.lower() in names for label in plain)
    kept = [label if (label.lower() in names if named else _counts(label, len(classes))) else "" for label in plain]
    others = (own for own, label in zip(labels, kept, strict=True) if own and not label)
    why = next((f"'{own:.60}' is none of {', '.join(classes):.200}" for own in others), "")
    try:
        return labels_as_classes(kept, classes, "the column"), why
    except InputError as error:
        return [None] * len(labels), str(error).rstrip(".")


def _plain(labels: Sequence[str], classes: tuple[str, ...]) -> list[str]:
    """The labels with numbers in place of what tables write for them, unless that is the name of a class."""
    names = {name.lower() for name in classes}
    return [label if label.lower() in names else _NUMBERS.get(label, _WHOLE.sub(r"\1", label)) for label in labels]


def _counts(label: str, classes: int) -> bool:
    """Whether a label is a number that can count so many classes."""
    # A cell may hold any number of digits.
    return label.isdecimal() and len(label) <= LONGEST and int(label) <= classes
