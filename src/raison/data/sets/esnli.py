"""e-SNLI: pairs with the words that annotators highlighted as the reason for the label."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.core.inputs.rationale import Rationale, Span
from raison.data.columns import ColumnLayout
from raison.data.dataset import BrokenLine, Row
from raison.data.lines import LineRecord, read_records
from raison.data.named import NamedSet, Split
from raison.data.readers import columns, labelled
from raison.data.rows import Entry

_LABELS = ("entailment", "neutral", "contradiction")
_PARTS = ("premise", "hypothesis")
# The files without highlights have six more columns than needed and count the classes in another order.
_PLAIN_LAYOUT = ColumnLayout(((2,), (3,)), 1, header=True, width=7)
_PLAIN_CODES = ("1", "0", "2")
_PLAIN = columns(_PLAIN_LAYOUT, _PLAIN_CODES)


def _highlights(paths: tuple[Path, ...]) -> Iterator[Entry]:
    for number, item in enumerate(_items(paths[0]), start=1):
        try:
            rationales = tuple(_rationale(item, explanation) for explanation in item["explanations"])
            label = _LABELS.index(item["label"])
            yield Row((item["premise"], item["hypothesis"]), label, number, rationales)
        except (KeyError, TypeError, ValueError) as error:
            yield BrokenLine(number, f"not a pair with highlights ({error})")


def _items(path: Path) -> list[Any]:
    try:
        items: list[Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}.") from None
    return items


def _apart(paths: tuple[Path, ...]) -> Iterator[Entry]:
    """Plain pairs about other photographs than those of the highlighted pairs, the last file, numbered
    consecutively."""
    try:
        photographs = {_photograph(item["id"]) for item in _items(paths[-1])}
    except (AttributeError, KeyError, TypeError):
        raise DataError(f"{paths[-1]} has pairs without an id.") from None

    def apart(record: LineRecord) -> bool:
        return bool(record.broken) or _photograph(str(record.cells[0])) not in photographs  # type: ignore[index]

    number = 0
    for path in paths[:-1]:
        records = read_records(path, "utf-8")
        next(records, None)  # The names of the columns.
        for entry in labelled(filter(apart, records), _PLAIN_LAYOUT, _PLAIN_CODES):
            number += 1
            yield replace(entry, number=number)


def _photograph(pair: str) -> str:
    """A pair's id without the caption's number: the captions of one photograph are near paraphrases."""
    return pair.partition("#")[0]


def _rationale(item: dict[str, Any], explanation: dict[str, Any]) -> Rationale:
    """One annotator's tokens, given as [token, character], in the order of the file."""
    spans = []
    for segment, part in enumerate(_PARTS):
        for token, start in explanation[f"{part}_expl_tokens"]:
            if not token or not item[part].startswith(token, start):
                raise ValueError(f"the {part} has no '{token}' at character {start}")
            spans.append(Span(start, start + len(token), segment))
    return tuple(spans)


SET = NamedSet(
    folder="esnli",
    labels=_LABELS,
    # On the Hub it is a script, which current versions of datasets refuse, and it has no highlights.
    splits={
        "train_highlights": Split(("highlights_train988.json",), _highlights),
        "dev_highlights": Split(("highlights_dev1000.json",), _highlights),
        "dev": Split(("dev.tsv",), _PLAIN),
        "test": Split(("test.tsv",), _PLAIN),
        "apart": Split(("test.tsv", "dev.tsv", "highlights_dev1000.json"), _apart),
    },
    citation="Camburu et al., NeurIPS 2018: e-SNLI: natural language inference with natural language explanations",
    note="dev_highlights (3 annotators a pair) is part of dev, with other tokenisation; train_highlights has one each. "
    "apart has the pairs of test and dev about other photographs than dev_highlights: train on it, judge on those.",
    never_with=("snli",),
)
