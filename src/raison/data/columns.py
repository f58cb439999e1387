"""Finds the columns of the text and of the label."""

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from raison.core.errors import DataError, UnknownNameError
from raison.core.settings.fields import Setting
from raison.data.answer_spans import looks_like_answers
from raison.data.lines import LineRecord, is_label_like, usual_width
from raison.data.spans import looks_like_rationales, looks_like_units

Column = str | int
"""A column's name, or its number counted from 0. "title+description" joins columns with a space."""
COLUMN = "a column's name or number"
DelimiterSetting = Annotated[
    str | None,
    Setting("Column separator of a csv file: a character, tab or none; detected if possible."),
]
EncodingSetting = Annotated[str, Setting("Encoding of the files, such as latin-1.")]

TEXT_NAMES = ("text", "sentence", "review", "content", "question", "document", "tweet", "comment", "premise", "phrase")
LABEL_NAMES = (
    "label",
    "labels",
    "label_name",
    "class",
    "category",
    "sentiment",
    "target",
    "classification",
    "gold_label",
    "stars",
    "rating",
    "polarity",
)
RATIONALE_NAMES = ("rationale", "rationales")
PAIR_NAMES = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("question", "context"),
)
RANKING_NAMES = ("query", "document", "other_document")
"""A query with two documents; the explanation is why the first comes before the second."""
ANSWER_NAMES = ("answers",)
UNIT_NAMES = ("units",)
ID_NAMES = ("id", "idx")
OTHER_NAMES = ("idx", "id", "title", "description", "hypothesis", "sentence1", "sentence2", "question1", "question2")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns that the caller requested, and the delimiter; None leaves the choice to the file."""

    text: Annotated[Column | None, Setting("The text's column; title+description joins two.", words=COLUMN)] = None
    pair: Annotated[
        tuple[Column, Column] | None,
        Setting("The columns of a pair: premise,hypothesis.", words="a list of two columns"),
    ] = None
    label: Annotated[Column | None, Setting("The label's column.", words=COLUMN)] = None
    rationale: Annotated[Column | None, Setting(words=COLUMN)] = None
    delimiter: DelimiterSetting = None
    contrast: Annotated[Column | None, Setting(words=COLUMN)] = None
    """The column of the class that each text's explanation contrasts with the target."""


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """Where a file keeps its texts, labels, rationales, answers (of a pair's first text in its second) and units.

    `texts` holds one group of columns per text of a pair or a ranking; a group's cells are joined with a space.
    `contrast` is the column of what a row's explanation is contrasted with. `header` says whether the first record is a
    header; `names` are its columns', or those of the first mappings. `width` is the number of cells of a row, None for
    mappings.
    """

    texts: tuple[tuple[Column, ...], ...]
    label: Column | None
    header: bool = False
    width: int | None = None
    rationale: Column | None = None
    answers: Column | None = None
    units: Column | None = None
    contrast: Column | None = None
    names: tuple[str, ...] = ()

    def called(self, column: Column) -> str:
        """A column in messages: by its name in quotes, or by its number."""
        named = isinstance(column, int) and column < len(self.names)
        return f"column '{self.names[int(column)] if named else column}'"

    def described(self, first: LineRecord) -> str:
        """Which columns are used as text and label, by their names; in a file without a header, its first row, too."""
        names = self.names if self.header else None
        groups = ["+".join(_shown(column, names) for column in group) for group in self.texts]
        text = "each whole line" if self.width == 1 and names is None else " and ".join(groups)
        said = f"text: {text}; label: {'none' if self.label is None else _shown(self.label, names)}"
        if self.header or not isinstance(first.cells, list):
            return said
        return f"{said}; no header, first row: '{_beginning(first)}'"


def _shown(column: Column, names: Sequence[str] | None) -> str:
    """A column by its name in quotes, or by its number."""
    if isinstance(column, int):
        return f"column {column}" if names is None else f"'{names[column]}'"
    return f"'{column}'"


def layout_of(head: Sequence[LineRecord], wanted: Wanted, comma_separated: bool) -> ColumnLayout:
    """Decide on the layout from a file's first good records. Raises DataError naming the columns that exist."""
    first = head[0].cells
    if isinstance(first, dict):
        names = list(dict.fromkeys(name for record in head for name in record.cells))
        layout = replace(_named(names, wanted), rationale=_rationale_column(head, names, wanted))
        contrast = None if wanted.contrast is None else existing(wanted.contrast, names)[0]
        layout = replace(layout, units=_unit_column(head, names), contrast=contrast, names=tuple(names))
        return replace(layout, answers=_answer_column(head, names) if len(layout.texts) == 2 else None)
    if wanted.rationale is not None:
        raise DataError("rationales are lists of spans: they can be read from .jsonl and .parquet only.")
    lines = [record for record in head if isinstance(record.cells, list)]
    cells = [str(cell).strip() for cell in first]
    names = _column_names(cells)
    if is_header(cells, wanted):
        layout = _named(names, wanted)
        return ColumnLayout(
            tuple(tuple(names.index(str(column)) for column in group) for group in layout.texts),
            None if layout.label is None else names.index(str(layout.label)),
            header=True,
            width=len(names),
            contrast=None if wanted.contrast is None else names.index(existing(wanted.contrast, names)[0]),
            names=tuple(names),
        )
    layout = _headerless(lines, wanted, comma_separated)
    if wanted.contrast is not None:
        layout = replace(layout, contrast=_numbered(wanted.contrast, layout.width or 0, head[0])[0])
    return replace(layout, header=True, names=tuple(names)) if _heads_numbers(lines, layout.label) else layout


def id_column(layout: ColumnLayout, first: LineRecord, column: Column | None) -> Column | None:
    """The column of the rows' ids: the requested one, or one called id; None without one. Raises DataError."""
    if column is not None:
        return column_of(layout, first, column)
    if not layout.header and isinstance(first.cells, list):
        return None
    names = _names_in(layout, first)
    name = _first_of(ID_NAMES, names)
    return None if name is None else names.index(name) if layout.header else name


def column_of(layout: ColumnLayout, first: LineRecord, column: Column) -> Column:
    """The one requested column, as the layout finds its cells. Raises DataError."""
    if not layout.header and isinstance(first.cells, list):
        return _numbered(column, layout.width or 0, first)[0]
    names = _names_in(layout, first)
    name = existing(column, names)[0]
    return names.index(name) if layout.header else name


def _names_in(layout: ColumnLayout, first: LineRecord) -> list[str]:
    return list(layout.names) or [str(cell).strip() for cell in first.cells]


def _column_names(cells: list[str]) -> list[str]:
    """The names of a header's columns. One without a name (pandas writes its index like this) is called by its
    number."""
    return [cell or f"{number} (unnamed)" for number, cell in enumerate(cells)]


def _heads_numbers(lines: list[LineRecord], label: Column | None) -> bool:
    """Whether the label's column has a word followed by whole numbers, which makes the first line a header of unknown
    names."""
    width = usual_width(lines)
    if label is None or len(lines) < 3 or len(lines[0].cells) != width:
        return False
    first, *others = (cells[int(label)].strip() for cells in _full(lines, width))
    return not _is_number(first) and all(map(_is_number, others))


def _is_number(cell: str) -> bool:
    return cell.lstrip("+-").replace(".", "", 1).replace(",", "", 1).isdigit()


def _rationale_column(head: Sequence[LineRecord], names: list[str], wanted: Wanted) -> Column | None:
    if wanted.rationale is not None:
        return existing(wanted.rationale, names)[0]
    column = _first_of(RATIONALE_NAMES, names)
    # Other files keep a free-text explanation, words or a mask under this name.
    values = [record.cells.get(column) for record in head if isinstance(record.cells, Mapping)] if column else []
    return column if any(map(looks_like_rationales, values)) or all(value is None for value in values) else None


def _answer_column(head: Sequence[LineRecord], names: list[str]) -> Column | None:
    column = _first_of(ANSWER_NAMES, names)
    # Other data sets keep a list of plain texts under this name.
    values = [record.cells.get(column) for record in head if isinstance(record.cells, Mapping)] if column else []
    known = any(map(looks_like_answers, values)) or all(value is None for value in values)
    return column if known else None


def _unit_column(head: Sequence[LineRecord], names: list[str]) -> Column | None:
    column = _first_of(UNIT_NAMES, names)
    # Other files keep numbers or words under this name: only objects and lists of lists can be spans.
    values = [record.cells.get(column) for record in head if isinstance(record.cells, Mapping)] if column else []
    return column if all(value is None or looks_like_units(value) for value in values) else None


def is_header(cells: list[str], wanted: Wanted) -> bool:
    """Whether a first line's cells are names of columns: they differ, and at least one is well known or requested.

    Empty cells are columns without a name. Raises DataError if such a name occurs twice.
    """
    parts = {part for column in _asked(wanted) if isinstance(column, str) for part in _parts(column)}
    # A number is a column's place: an equal number in a cell of the first line is no header.
    requested = {part for part in parts if not part.isdigit()}
    known = {*TEXT_NAMES, *LABEL_NAMES, *OTHER_NAMES}
    names = [cell for cell in cells if cell]
    lowered = {name.lower() for name in names}
    # A line of data may have the word "class" twice.
    certain = bool(requested & {*names} or (lowered & {*TEXT_NAMES} and lowered & {*LABEL_NAMES}))
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None and certain:
        raise DataError(f"two columns of the first line are called '{twice}': give each its own name.")
    return twice is None and (certain or bool(lowered & known))


def _asked(wanted: Wanted) -> list[Column]:
    return [
        column for column in (wanted.text, *(wanted.pair or ()), wanted.label, wanted.contrast) if column is not None
    ]


def _parts(column: Column) -> tuple[str, ...]:
    return tuple(part.strip() for part in str(column).split("+"))


def _named(names: list[str], wanted: Wanted) -> ColumnLayout:
    label = _first_of(LABEL_NAMES, names) if wanted.label is None else existing(wanted.label, names)[0]
    if wanted.pair is not None:
        return ColumnLayout(tuple(existing(column, names) for column in wanted.pair), label)
    if wanted.text is not None:
        return ColumnLayout((existing(wanted.text, names),), label)
    lowered = [name.lower() for name in names]
    for pair in (RANKING_NAMES, *PAIR_NAMES):
        if all(name in lowered for name in pair):
            return ColumnLayout(tuple((names[lowered.index(name)],) for name in pair), label)
    text = _first_of(TEXT_NAMES, names)
    if text is None:
        raise DataError(f"no column is called {', '.join(TEXT_NAMES)}; name the text column: {_listed(names)}.")
    return ColumnLayout(((text,),), label)


def _first_of(known: Sequence[str], names: list[str]) -> str | None:
    lowered = [name.lower() for name in names]
    return next((names[lowered.index(name)] for name in known if name in lowered), None)


def existing(column: Column, names: list[str]) -> tuple[str, ...]:
    """The names that a column, or several joined by +, stands for. Raises DataError."""
    if isinstance(column, int) and 0 <= column < len(names):
        return (names[column],)
    parts = (str(column),) if column in names else _parts(column)
    for part in parts:
        if part not in names:
            raise DataError(str(UnknownNameError("column", part, names)))
    return parts


def _headerless(lines: list[LineRecord], wanted: Wanted, comma_separated: bool) -> ColumnLayout:
    width, first = usual_width(lines), lines[0]
    label = None if wanted.label is None else _numbered(wanted.label, width, first)[0]
    if wanted.pair is not None:
        return ColumnLayout(tuple(_numbered(column, width, first) for column in wanted.pair), label, width=width)
    if wanted.text is not None:
        return ColumnLayout((_numbered(wanted.text, width, first),), label, width=width)
    if width == 1:
        return ColumnLayout(((0,),), None, width=1)
    if label is None:
        label = _guess_label(lines, width, comma_separated)
    rest = tuple(column for column in range(width) if column != label)
    if label is None or (len(rest) > 1 and not comma_separated):
        raise DataError(
            f"the first line ({_beginning(first)}) has none of the usual names of columns. If it is a header, name the "
            "text's column by its name; if not, by its number, counted from 0 (--text-column or --text, text= or "
            "text_column=); '1+2' joins two, and a pair has two columns (--pair-column or --pair, pair= or "
            "pair_column=)."
        )
    return ColumnLayout((rest,), label, width=width)


def _full(lines: list[LineRecord], width: int) -> list[list[str]]:
    """The lines with the usual number of cells, in a file without a header."""
    rows = [record.cells for record in lines if len(record.cells) == width]
    return [[str(cell) for cell in row] for row in rows if not isinstance(row, Mapping)]


def _guess_label(lines: list[LineRecord], width: int, comma_separated: bool) -> int | None:
    full = _full(lines, width)
    columns = [[cells[column].strip() for cells in full] for column in range(width)]
    like = [column for column in range(width) if is_label_like(columns[column])]
    if width == 2 and len(like) == 2:
        # If both are short, the label is the one with fewer different values.
        like = [min(like, key=lambda column: (len(set(columns[column])), -column))]
    # In headerless CSV files the usual form is the class first, then the title and the body of the text.
    if len(like) == 1 and (width == 2 or (comma_separated and like == [0])):
        return like[0]
    return None


def _numbered(column: Column, width: int, first: LineRecord) -> tuple[int, ...]:
    """The columns' numbers in a file whose first line is no header. Raises DataError."""
    known = [str(number) for number in range(width)]
    parts = _parts(column)
    for part in parts:
        if part not in known:
            raise DataError(
                f"unknown column '{part}'.{_meant(part, first)} Known: {', '.join(known)}. The file has no header: its "
                f"first line ({_beginning(first)}) has no usual or requested name, so the columns are numbered from 0."
            )
    return tuple(int(part) for part in parts)


def _meant(name: str, first: LineRecord) -> str:
    """A suggestion: a cell of the first line that is nearly the name."""
    cells = {str(cell).strip().lower(): str(cell).strip() for cell in first.cells}
    close = difflib.get_close_matches(name.lower(), cells, n=1)
    return f" Did you mean '{cells[close[0]]}'?" if close and not name.isdigit() else ""


def _beginning(record: LineRecord) -> str:
    """The cells of a record, on one line and cut."""
    line = " | ".join(" ".join(str(cell).split()) for cell in record.cells)
    return line if len(line) <= 60 else f"{line[:57]}..."


def _listed(names: list[str]) -> str:
    return "the columns are " + ", ".join(names)
