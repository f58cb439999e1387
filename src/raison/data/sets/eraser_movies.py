"""ERASER's movie reviews, with the passages that annotators marked as the reason for the polarity."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from raison.core.inputs.rationale import Span
from raison.data.dataset import BrokenLine, Row
from raison.data.lines import read_records
from raison.data.named import NamedSet, Split
from raison.data.rows import Entry

_CLASSES = ("NEG", "POS")
_TOKEN = re.compile(r"\S+")


def _read(paths: tuple[Path, ...]) -> Iterator[Entry]:
    """The first file's reviews, except those of the files after it. Each review's own file is opened when it is
    reached."""
    documents = paths[0].parent / "docs"
    elsewhere = {_id(record.cells) for path in paths[1:] for record in read_records(path, "utf-8")}
    for record in read_records(paths[0], "utf-8"):
        if record.broken or not isinstance(record.cells, Mapping):
            yield BrokenLine(record.number, record.broken)
        elif _id(record.cells) not in elsewhere:
            yield _entry(record.number, record.cells, documents)


def _id(cells: Any) -> str | None:
    return cells.get("annotation_id") if isinstance(cells, Mapping) else None


def _entry(number: int, cells: Mapping[str, Any], documents: Path) -> Entry:
    try:
        # Sentences are lines; tokens are what white space separates.
        text = (documents / cells["annotation_id"]).read_text(encoding="utf-8").rstrip()
        tokens = [match.span() for match in _TOKEN.finditer(text)]
        spans = tuple(_span(piece, text, tokens) for group in cells["evidences"] for piece in group)
        return Row(text, _CLASSES.index(cells["classification"]), number, (spans,))
    except FileNotFoundError as error:
        return BrokenLine(number, f"the review {error.filename} is missing")
    except (KeyError, TypeError, ValueError) as error:
        return BrokenLine(number, f"not a review with evidences ({error})")


def _span(piece: Mapping[str, Any], text: str, tokens: list[tuple[int, int]]) -> Span:
    first, last = piece["start_token"], piece["end_token"] - 1
    if not 0 <= first <= last < len(tokens):
        raise ValueError(f"tokens {first} to {last} of {len(tokens)}")
    start, end = tokens[first][0], tokens[last][1]
    if text[start:end].split() != piece["text"].split():
        raise ValueError(f"tokens {first} to {last} are not '{piece['text']}'")
    return Span(start, end)


SET = NamedSet(
    folder="eraser_movies",
    labels=("negative", "positive"),
    # On the Hub it is a script, which current versions of datasets refuse, and its evidences have no positions.
    splits={
        # The training file repeats all rows of the validation file.
        "train": Split(("train.jsonl", "val.jsonl"), _read),
        "dev": Split(("val.jsonl",), _read),
        "test": Split(("test.jsonl",), _read),
    },
    citation="DeYoung et al., ACL 2020: ERASER; Zaidan, Eisner and Piatko, NIPS 2008 workshop; Pang and Lee, ACL 2004",
    note="One training review has no evidence: its only annotator marked nothing. The test split was annotated more "
    "completely: 30 % of the tokens against 9 %.",
)
