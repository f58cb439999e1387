"""Labelled texts, wherever they came from."""

from dataclasses import dataclass

from raison.core.errors import InputError
from raison.core.unit import Text

Label = str | int | None


@dataclass(frozen=True, slots=True)
class Row:
    """One text and its label (None where there is none).

    `number` is its line in the file, counted from 1, or its row in a Hub data set, counted from 0.
    """

    text: Text
    label: Label
    number: int


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A line that could not be used, and why."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows in the order of their source.

    `name` is a Hub id or the file's name with its folder's; `sha256` is that of the file's bytes ("" for the Hub).
    `labels` are the names of numeric labels, where the source knows them.
    """

    name: str
    rows: tuple[Row, ...]
    broken: tuple[BrokenLine, ...] = ()
    sha256: str = ""
    labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def texts(self) -> tuple[Text, ...]:
        """The rows' texts."""
        return tuple(row.text for row in self.rows)

    def class_indices(self, classes: tuple[str, ...]) -> tuple[int, ...]:
        """Each row's label as an index of `classes`.

        A label that is text must be one of the classes (in any case). Numbers count from 0, or from 1 where the
        number of classes itself occurs. Raises InputError naming the first row that does not fit.
        """
        first = 1 if any(row.label == len(classes) for row in self.rows) else 0
        lowered = {name.lower(): index for index, name in enumerate(classes)}
        indices = []
        for row in self.rows:
            index = lowered.get(row.label.lower(), -1) if isinstance(row.label, str) else _shifted(row.label, first)
            if not 0 <= index < len(classes):
                raise InputError(
                    f"{self.name}, row {row.number}: the label {row.label!r} is none of {', '.join(classes)}."
                )
            indices.append(index)
        return tuple(indices)


def _shifted(label: int | None, first: int) -> int:
    return -1 if label is None else label - first
