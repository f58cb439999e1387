"""Emotion (CARER): the emotion of a tweet, six classes."""

from collections.abc import Iterator
from pathlib import Path

from raison.data.lines import LineRecord, whole_lines
from raison.data.named import NamedSet, Split
from raison.data.readers import TEXT_AND_LABEL, labelled
from raison.data.rows import Entry

_LABELS = ("sadness", "joy", "love", "anger", "fear", "surprise")
_HEADER = "text;label_name"


def _read(paths: tuple[Path, ...]) -> Iterator[Entry]:
    # The first line is a header in some copies and a row in others.
    lines = (line for line in whole_lines(paths[0], "utf-8") if line.cells != [_HEADER])
    return labelled((_cut(line) for line in lines), TEXT_AND_LABEL, _LABELS)


def _cut(line: LineRecord) -> LineRecord:
    if line.broken:
        return line
    # A text may contain semicolons.
    (whole,) = line.cells
    text, _, label = whole.rpartition(";")
    return LineRecord(line.number, [text, label])


SET = NamedSet(
    folder="emotion",
    labels=_LABELS,
    splits={
        "train": Split(("train.txt",), _read, ("dair-ai/emotion:split", "train")),
        "dev": Split(("val.txt",), _read, ("dair-ai/emotion:split", "validation")),
        "test": Split(("test.txt",), _read, ("dair-ai/emotion:split", "test")),
    },
    citation="Saravia et al., EMNLP 2018: CARER: contextualized affect representations for emotion recognition",
)
