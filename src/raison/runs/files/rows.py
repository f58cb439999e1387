"""An explanation as one row of plain columns, which other programs read without raison, and back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raison.core.errors import DataError
from raison.core.results.explanation import SCHEMA, Explanation
from raison.data.streams import Item

Record = dict[str, Any]
"""The columns of one row, by their names."""

UNITS = "list<struct<start: int32, end: int32, segment: int32, text: string, name: string>>"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type as Arrow writes it, and what it holds. Values may be missing where it says so."""

    name: str
    type: str
    about: str


COLUMNS = (
    Column("row", "int64", "number of the row in the whole input, from 0"),
    Column("number", "int64", "0; with `--target each`, number of the explanation among those of its row"),
    Column("source", "string", "the file or data set"),
    Column("line", "int64", "the line in a file, from 1; the row in a data set of the Hub, from 0"),
    Column("id", "string", "the id column's value, or `FILE:LINE`"),
    Column("text", "string", "the text; of a pair the first"),
    Column("second", "string", "the second text of a pair; missing for one text"),
    Column("units", UNITS, "the units: characters `start` to `end` of text number `segment`, their text, their name"),
    Column("scores", "list<double>", "a score for each unit"),
    Column("prediction", "string", "what the model predicts"),
    Column("target", "string", "what is explained"),
    Column("against", "string", "the class that it is explained against; missing without one"),
    Column("of", "string", "the value: probability, logit, log_odds, margin or log_probability"),
    Column("value_full", "double", "the value for the whole text"),
    Column("value_empty", "double", "the value with every unit removed"),
    Column("classes", "list<string>", "the model's classes"),
    Column("probabilities", "list<double>", "their probabilities; none of a model that gives a number"),
    Column("outputs", "string", "what the model gives: classes, labels or number"),
    Column("method", "string", "the method that ran"),
    Column("config", "string", "its settings, as JSON"),
    Column("signed", "bool", "whether scores may be below zero"),
    Column("unit", "string", "token, word, sentence or part"),
    Column("removal", "string", "what an absent unit becomes"),
    Column("seed", "int64", "the seed of random methods"),
    Column("evaluations", "int64", "forward passes that the row took alone"),
    Column("gradients", "int64", "backward passes"),
    Column("seconds", "double", "the row's share of its batch's time"),
    Column("truncated", "int64", "tokens that were cut off"),
    Column("notes", "string", "remarks of the method and of the model, as JSON"),
    Column("answer", "string", "the explained answer to a question, as JSON; missing without one"),
    Column("place", "string", "where in the text the prediction is made, as JSON; missing without one"),
    Column("model", "string", "the model's name"),
    Column("version", "string", "the version of raison"),
)
_AS_JSON = ("config", "notes", "answer", "place")
_OWN = ("row", "number", "source", "line", "id", "second", "prediction")
"""Columns that are no fields of an explanation."""


def record_of(item: Item, number: int, explanation: Explanation) -> Record:
    """The row of an explanation."""
    found: Record = {"answer": None, "place": None} | explanation.to_dict()
    text = explanation.text
    if not isinstance(text, str) and len(text) > 2:
        raise DataError("a ranking of several documents is no row of a file.")
    own = {
        "row": item.row,
        "number": number,
        "source": item.source,
        "line": item.line,
        "id": item.id,
        "text": text if isinstance(text, str) else text[0],
        "second": None if isinstance(text, str) else text[1],
        "prediction": explanation.prediction,
        "units": [{"name": ""} | unit for unit in found["units"]],
        **{name: _json(found[name]) for name in _AS_JSON},
    }
    return {column.name: own[column.name] if column.name in own else found[column.name] for column in COLUMNS}


def explanation_of(record: Mapping[str, Any]) -> Explanation:
    """The explanation of a row. Raises DataError."""
    try:
        found = {name: value for name, value in record.items() if name not in _OWN}
        found |= {name: None if record[name] is None else json.loads(record[name]) for name in _AS_JSON}
        text = record["text"] if record["second"] is None else [record["text"], record["second"]]
        return Explanation.from_dict({"schema": SCHEMA, **found, "text": text})
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"not a row of explanations ({error}).") from None


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)
