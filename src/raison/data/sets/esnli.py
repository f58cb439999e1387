"""e-SNLI: pairs with the words that annotators highlighted as the reason for the label."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.core.inputs.rationale import Rationale, Span
from raison.data.columns import Layout
from raison.data.dataset import BrokenLine, Row
from raison.data.named import NamedSet, Split
from raison.data.readers import columns
from raison.data.rows import Entry

_LABELS = ("entailment", "neutral", "contradiction")
_PARTS = ("premise", "hypothesis")
# The files without highlights have six more columns than needed and count the classes in another order.
_PLAIN = columns(Layout(((2,), (3,)), 1, header=True, width=7), ("1", "0", "2"))


def _highlights(paths: tuple[Path, ...]) -> Iterator[Entry]:
    try:
        items = json.loads(paths[0].read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{paths[0]} is not JSON: {error}.") from None
    for number, item in enumerate(items, start=1):
        try:
            rationales = tuple(_rationale(item, explanation) for explanation in item["explanations"])
            label = _LABELS.index(item["label"])
            yield Row((item["premise"], item["hypothesis"]), label, number, rationales)
        except (KeyError, TypeError, ValueError) as error:
            yield BrokenLine(number, f"not a pair with highlights ({error})")


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
    # The Hub's form is a script, which today's datasets library refuses, and it has no highlights.
    splits={
        "train_highlights": Split(("highlights_train988.json",), _highlights),
        "dev_highlights": Split(("highlights_dev1000.json",), _highlights),
        "dev": Split(("dev.tsv",), _PLAIN),
        "test": Split(("test.tsv",), _PLAIN),
    },
    citation="Camburu et al., NeurIPS 2018: e-SNLI: natural language inference with natural language explanations",
    note="dev_highlights (3 annotators a pair) is part of dev, with other tokenisation; train_highlights has one each.",
    never_with=("snli",),
)
