"""Labelled texts from any source."""

from dataclasses import dataclass, field, replace

from raison.core.errors import DataError, InputError
from raison.core.inputs.parts import Given, PartedText
from raison.core.inputs.rationale import Rationale
from raison.core.inputs.unit import Text, Unit
from raison.core.targets.answer import Answer
from raison.data.question_rows import QuestionRow

Label = str | int | None
Contrast = str | int | tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One text and its label (None if there is none).

    `number` is its line in the file, counted from 1, or its row in a Hub data set, counted from 0. `rationales` has one
    entry per annotator, empty for one who marked nothing; () if the text was not annotated. `answers` are those of a
    pair (question, context), of which the first is learned; () if there is none. `units` are the parts of the text that
    the source names; () if there is none. `contrast` is what its explanation is contrasted with: a class, or words of
    an output (one, or one for each token). `output` is what a model wrote after the text. `asked` is the question with
    its sources; the text is then its title.
    """

    text: Text
    label: Label
    number: int
    rationales: tuple[Rationale, ...] = ()
    answers: tuple[Answer, ...] = ()
    units: tuple[Unit, ...] = ()
    contrast: Contrast | None = None
    output: str | None = None
    asked: QuestionRow | None = None

    @property
    def given(self) -> Given:
        """The text, with its parts if it has any."""
        return PartedText(self.text, self.units) if self.units else self.text


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A line that could not be used, and why."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Dataset:
    """Rows in the order of their source.

    `name` is a Hub id, or the file's name with its folder's. `sha256` is that of the file's bytes ("" for the Hub).
    `labels` are the names of numeric labels, if the source has them. `numbers` are the least and the greatest numeric
    label of the whole source, of which the rows may be a part; None without numeric labels. `taken` says which columns
    were taken as text and as label ("text: 'review'; label: 'stars'; columns separated by ';'"), "" for a named data
    set.
    """

    name: str
    rows: tuple[Row, ...]
    broken: tuple[BrokenLine, ...] = ()
    sha256: str = ""
    labels: tuple[str, ...] = ()
    taken: str = field(default="", compare=False)
    numbers: tuple[int, int] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # A part of a data set is made with `replace`, which passes on what is known of the whole.
        own = [row.label for row in self.rows if isinstance(row.label, int)]
        known = [*own, *(self.numbers or ())]
        object.__setattr__(self, "numbers", (min(known), max(known)) if known else None)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Dataset {self.name}, {len(self.rows):,} rows>"

    def counted_with(self, *others: "Dataset | None") -> "Dataset":
        """The same rows, in which a number is the same class as in other data sets of the task."""
        known = [number for data in (self, *others) if data is not None for number in data.numbers or ()]
        return replace(self, numbers=(min(known), max(known)) if known else None)

    @property
    def texts(self) -> tuple[Text, ...]:
        """The rows' texts."""
        return tuple(row.text for row in self.rows)

    @property
    def parted(self) -> tuple[Given, ...]:
        """The rows' texts, with their parts if every row names some."""
        return tuple(row.given for row in self.rows) if self.has_units else self.texts

    @property
    def has_units(self) -> bool:
        """Whether every row names parts of its text."""
        return bool(self.rows) and all(row.units for row in self.rows)

    @property
    def questions(self) -> tuple[QuestionRow, ...]:
        """The rows' questions with their sources; () unless every row has one."""
        questions = tuple(row.asked for row in self.rows if row.asked is not None)
        return questions if len(questions) == len(self.rows) else ()

    @property
    def rationales(self) -> tuple[tuple[Rationale, ...], ...]:
        """Each row's rationales, one per annotator."""
        return tuple(row.rationales for row in self.rows)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Each row's first answer. Raises DataError naming the first row that has none."""
        for row in self.rows:
            if not row.answers:
                raise DataError(
                    f"{self.name}, row {row.number}: no answer, and every row needs one here. Use a data set of "
                    "questions with answers (squad), or a file with the columns question, context and answers."
                )
        return tuple(row.answers[0] for row in self.rows)

    @property
    def has_rationales(self) -> bool:
        """Whether every row has at least one annotator."""
        return bool(self.rows) and all(row.rationales for row in self.rows)

    def require_rationales(self) -> None:
        """Raises DataError naming the first row that no annotator marked."""
        for row in self.rows:
            if not row.rationales:
                raise DataError(
                    f"{self.name}, row {row.number}: no rationale, and every row needs one here. Use a data set that "
                    f"has them (eraser_movies, or esnli with split 'dev_highlights'), a .jsonl file with a column "
                    f"'rationale' of [start, end] spans, or raison.data.known_features(dataset)."
                )

    def class_indices(self, classes: tuple[str, ...]) -> tuple[int, ...]:
        """Each row's label as an index of `classes`.

        A label that is text must be one of the classes (in any case). A number with a known name (`labels`) is the
        class of that name if all names are classes, because models order their classes differently. If no names are
        known and all numbers are names of classes ("-1", "1"), they mean these. Other numbers count from 0, or, if no
        names are known, from 1 if the source has no label 0 but the number of classes itself. Raises InputError for a
        source with neither of the two, and naming the first row that does not fit.
        """
        lowered = {name.lower(): index for index, name in enumerate(classes)}
        numbers = self._numbered_classes(tuple(name.lower() for name in classes))
        indices, unknown = [], []
        for row in self.rows:
            if row.label is None:
                raise InputError(
                    f"{self.name}, row {row.number}: no label, and every row needs one here. --skip-bad "
                    "(skip_bad=True) leaves out rows without one."
                )
            index = lowered.get(row.label.lower(), -1) if isinstance(row.label, str) else numbers.get(row.label, -1)
            indices.append(index)
            if index < 0:
                unknown.append(row)
        if unknown:
            # One label that is no number makes names of all others, which are right.
            row = next((row for row in unknown if not str(row.label).isdecimal()), unknown[0])
            raise InputError(f"{self.name}, row {row.number}: the label {row.label!r} is none of {', '.join(classes)}.")
        return tuple(indices)

    def _numbered_classes(self, classes: tuple[str, ...]) -> dict[Label, int]:
        names = [name.lower() for name in self.labels]
        if names and all(name in classes for name in names):
            return {number: classes.index(name) for number, name in enumerate(names)}
        numbers = {*(row.label for row in self.rows if isinstance(row.label, int)), *(self.numbers or ())}
        if not names and all(str(number) in classes for number in numbers):
            return {number: classes.index(str(number)) for number in numbers}
        first = 0 if names else self._first_number(classes)
        return {first + index: index for index in range(len(classes))}

    def _first_number(self, classes: tuple[str, ...]) -> int:
        """The number of the first class: 0 or 1."""
        least, greatest = self.numbers or (0, 0)
        if least < 1 or greatest > len(classes):
            return 0
        if greatest < len(classes):
            raise InputError(
                f"{self.name} has neither the label 0 nor {len(classes)}, so its numbers may count the classes "
                f"{', '.join(classes)} from 0 or from 1: write names instead of numbers, or add rows of other classes."
            )
        return 1


def numbered(data: Dataset, names: tuple[str, ...]) -> Dataset:
    """The data with its labels as numbers in the order of the classes' names, if there are any. Raises InputError."""
    if not names:
        return data
    numbers = data.class_indices(names)
    rows = tuple(replace(row, label=number) for row, number in zip(data.rows, numbers, strict=True))
    return replace(data, rows=rows, labels=names)


def names_in(data: Dataset, classes: tuple[str, ...]) -> tuple[str, ...]:
    """The classes of a model, under the data's names if they have none of their own."""
    lowered = tuple(name.lower() for name in classes)
    return data.labels if lowered == unnamed_classes(len(data.labels)) else classes


def unnamed_classes(count: int) -> tuple[str, ...]:
    """How transformers calls a model's classes if nobody has named them, in small letters: label_0, label_1, ..."""
    return tuple(f"label_{number}" for number in range(count))
