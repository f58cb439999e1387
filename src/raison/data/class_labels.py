"""Labels as a file or a list writes them, as classes of a model."""

from collections.abc import Sequence

from raison.core.errors import InputError
from raison.data.dataset import Dataset, Row
from raison.data.rows import typed_labels


def labels_as_classes(labels: Sequence[str], classes: tuple[str, ...], name: str = "labels") -> list[str | None]:
    """The class of each label, None for "", which is none.

    Words are classes in any case, and numbers are classes as in `Dataset.class_indices`. Raises InputError, which
    names the data and the first label that is no class.
    """
    rows = typed_labels(tuple(Row("", label, number) for number, label in enumerate(labels) if label))
    indices = iter(Dataset(name, rows).class_indices(classes))
    return [classes[next(indices)] if label else None for label in labels]


def known_classes(labels: Sequence[str], classes: tuple[str, ...]) -> tuple[list[str | None], str]:
    """The same, with None for a label that is no class, and why the first of them is none, "" if all are.

    Numbers that could count the classes from 0 or from 1 are none, either.
    """
    names = {name.lower() for name in classes}
    rest, why = list(labels), ""
    for _ in range(2):
        try:
            return labels_as_classes(rest, classes), why
        except InputError as error:
            why = why or str(error)
        rest = [label if label.lower() in names or _is_number(label) else "" for label in rest]
    return [None] * len(labels), why


def _is_number(label: str) -> bool:
    return label.removeprefix("-").isdecimal()
