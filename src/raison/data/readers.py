"""Building blocks of the named data sets' readers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from raison.data.columns import ColumnLayout
from raison.data.dataset import BrokenLine, Row
from raison.data.lines import LineRecord, read_records, whole_lines
from raison.data.named import Reader
from raison.data.rows import Entry, entries

TEXT_AND_LABEL = ColumnLayout(((0,),), 1, width=2)
"""Records of a text and its label."""


def columns(layout: ColumnLayout, codes: Sequence[str], kind: str = "") -> Reader:
    """Reads one file of a known layout; `kind` is the format if the name has no ending."""

    def read(paths: tuple[Path, ...]) -> Iterator[Entry]:
        records = read_records(paths[0], "utf-8", kind)
        if layout.header:
            first = next(entries(records, layout), None)
            if isinstance(first, Row) and str(first.label) in codes:
                yield BrokenLine(first.number, "a row in place of the column names")
        yield from labelled(records, layout, codes)

    return read


def labelled(records: Iterable[LineRecord], layout: ColumnLayout, codes: Sequence[str]) -> Iterator[Entry]:
    """Records as rows whose label is the place of the record's label among `codes`, the codes that the file uses for
    classes.
    """
    for entry in entries(records, layout):
        if not isinstance(entry, Row):
            yield entry
        elif str(entry.label) in codes:
            yield replace(entry, label=codes.index(str(entry.label)))
        else:
            yield BrokenLine(entry.number, f"the label '{entry.label}' is none of {', '.join(codes)}")


def beside(texts: Path, labels: Path) -> Iterator[LineRecord]:
    """Lines of a file of texts with those of a file of labels; a line without a counterpart counts as broken."""
    pairs = zip_longest(whole_lines(texts, "utf-8"), whole_lines(labels, "utf-8"))
    for number, (text, label) in enumerate(pairs, start=1):
        if text is None or label is None:
            missing = labels if label is None else texts
            yield LineRecord(number, [], f"{missing.name} has fewer lines than its partner")
        else:
            yield LineRecord(number, [*text.cells, *label.cells], text.broken or label.broken)
