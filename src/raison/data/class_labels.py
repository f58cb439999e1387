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


def known_classes(labels: Sequence[str], classes: tuple[str, ...]) -> list[str | None]:
    """The same, and None throughout if a label is no class."""
    try:
        return labels_as_classes(labels, classes)
    except InputError:
        return [None] * len(labels)
