"""An explanation as one row of plain columns, readable without raison, and back."""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from raison.core.errors import DataError
from raison.core.inputs.unit import PART, segments
from raison.core.results.citations import Citations
from raison.core.results.explanation import SCHEMA, Explanation
from raison.core.results.generation import OTHER, GenerationExplanation
from raison.core.settings.reading import dump, json_value, parse
from raison.data.streams import Item

FlatRecord = dict[str, Any]
"""The columns of one row, by their names."""

Explains = Literal["predictions", "outputs", "citations"]
"""What the rows contain: explanations of a text's prediction, of generated output, or of an answer's statements."""

UNITS = "list<struct<start: int32, end: int32, segment: int32, text: string, name: string>>"


@dataclass(frozen=True, slots=True)
class FlatColumn:
    """A column: its type in Arrow's notation, and a description, which says if values may be missing."""

    name: str
    type: str
    about: str


COLUMNS = (
    FlatColumn("row", "int64", "number of the row in the whole input, from 0"),
    FlatColumn("number", "int64", "number of the explanation or statement within its row, from 0"),
    FlatColumn("source", "string", "the file or data set"),
    FlatColumn("line", "int64", "the line in a file, from 1; the row in a data set of the Hub, from 0"),
    FlatColumn("id", "string", "the id column's value, or `FILE:LINE`"),
    FlatColumn("text", "string", "the text or the prompt; the first text of a pair"),
    FlatColumn(
        "second", "string", "the second text of a pair, or a ranking's first document; missing for single texts"
    ),
    FlatColumn("third", "string", "a ranking's second document; missing elsewhere"),
    FlatColumn("label", "string", "the row's label as in the data; missing without one"),
    FlatColumn(
        "units", UNITS, "the units: characters `start` to `end` of text number `segment`, with their text and name"
    ),
    FlatColumn("scores", "list<double>", "a score for each unit"),
    FlatColumn("prediction", "string", "the prediction; for a generative model, the whole output or answer"),
    FlatColumn("target", "string", "what is explained: a class, an output or a statement"),
    FlatColumn("against", "string", "the contrast class; missing without one"),
    FlatColumn("of", "string", "the value: probability, logit, log_odds, margin or log_probability"),
    FlatColumn("value_full", "double", "the value for the whole text"),
    FlatColumn("value_empty", "double", "the value with every unit removed"),
    FlatColumn("classes", "list<string>", "the model's classes"),
    FlatColumn("probabilities", "list<double>", "their probabilities; empty for a model that outputs a number"),
    FlatColumn("outputs", "string", "the kind of output: classes, labels or number"),
    FlatColumn("method", "string", "the method that ran"),
    FlatColumn("config", "string", "its settings, as JSON"),
    FlatColumn("signed", "bool", "whether scores can be below zero"),
    FlatColumn("unit", "string", "token, word, sentence or part"),
    FlatColumn("removal", "string", "what replaces a removed unit"),
    FlatColumn("seed", "int64", "the seed of random methods"),
    FlatColumn("evaluations", "int64", "forward passes for this row; for statements, the first row counts all of them"),
    FlatColumn("gradients", "int64", "backward passes"),
    FlatColumn("seconds", "double", "the row's share of its batch's time"),
    FlatColumn("truncated", "int64", "number of truncated tokens"),
    FlatColumn("notes", "string", "notes of the method and of the model, as JSON"),
    FlatColumn("answer", "string", "the explained answer to a question, as JSON; missing without one"),
    FlatColumn("place", "string", "where in the text the prediction is made, as JSON; missing without one"),
    FlatColumn(
        "written",
        "string",
        "the complete result as JSON, for generative models; for statements, only in the first row",
    ),
    FlatColumn("model", "string", "the model's name"),
    FlatColumn("version", "string", "the version of raison"),
)
_AS_JSON = ("config", "notes", "answer", "place")
_OWN = ("row", "number", "source", "line", "id", "second", "third", "label", "prediction", "written")
"""Columns that are not fields of an explanation."""


def record_of(item: Item, number: int, explanation: Explanation) -> FlatRecord:
    """The row of an explanation."""
    columns: FlatRecord = {"answer": None, "place": None} | explanation.to_dict()
    text, *others = segments(explanation.text)
    row = {
        "row": item.row,
        "number": number,
        "source": item.source,
        "line": item.line,
        "id": item.id,
        "text": text,
        **dict(zip_longest(("second", "third"), others)),
        "label": item.label or None,
        "prediction": explanation.prediction,
        "written": None,
        "units": [{"name": ""} | unit for unit in columns["units"]],
        **{name: _json(columns[name]) for name in _AS_JSON},
    }
    values = columns | row
    return {column.name: values[column.name] for column in COLUMNS}


def record_of_output(item: Item, output: GenerationExplanation) -> FlatRecord:
    """The row of a whole output, with the explanations of its tokens."""
    return record_of(item, 0, output.whole()) | {"prediction": output.output, "written": _written(output)}


def records_of_citations(item: Item, citations: Citations) -> list[FlatRecord]:
    """A row for each statement of an answer; the first has the complete result."""
    records = [
        record_of(item, number, _of_statement(citations, number)) | {"prediction": citations.answer}
        for number in range(len(citations.statements))
    ]
    records[0]["written"] = _written(citations)
    return records


def result_of(record: Mapping[str, Any]) -> Explanation | GenerationExplanation | Citations:
    """The result of a row; for generative models the complete result, if the row has it. Raises DataError."""
    if record["written"] is None:
        return explanation_of(record)
    values = parse(record["written"], "a result") | {"seconds": record["seconds"]}
    return Citations.from_dict(values) if "statements" in values else GenerationExplanation.from_dict(values)


def _written(result: GenerationExplanation | Citations) -> str:
    """Without the seconds, which are in the row: everything else is the same when the work is repeated."""
    return dump({name: value for name, value in result.to_dict().items() if name != "seconds"}, None)


def _of_statement(citations: Citations, number: int) -> Explanation:
    """The scores of the sources for a statement. Costs that all statements share are counted for the first."""
    one, first = citations.statements[number], number == 0
    share = math.exp(one.log_probability)
    lights = {"lights": [check.light for check in citations.checks[number]]} if citations.checks else {}
    origin = {} if one.origin is None else {"origin": one.origin}
    return Explanation(
        text=citations.prompt,
        unit=PART,
        units=citations.sources,
        scores=citations.scores[number],
        classes=(one.text, OTHER),
        probabilities=(share, 1 - share),
        target=one.text,
        against=None,
        of=citations.of,
        value_full=_value(one.log_probability, citations.of),
        value_empty=_value(one.without, citations.of),
        method=citations.method,
        config=dict(citations.config),
        model=citations.model,
        removal=citations.removal,
        seed=citations.seed,
        evaluations=citations.evaluations if first else 0,
        gradients=citations.gradients if first else 0,
        seconds=citations.seconds if first else 0.0,
        notes=citations.notes | origin | lights,
        version=citations.version,
        signed=citations.signed,
    )


def _value(log_probability: float, of: str) -> float:
    """The explained value of a statement: its log-probability or its log-odds."""
    if of != "log_odds":
        return log_probability
    # A probability that rounds to 1 gets the largest odds that a float can represent.
    below = min(log_probability, -sys.float_info.epsilon)
    return below - math.log(-math.expm1(below))


def explanation_of(record: Mapping[str, Any]) -> Explanation:
    """The explanation of a row. Raises DataError."""
    try:
        values = {name: value for name, value in record.items() if name not in _OWN}
        values |= {name: None if record[name] is None else json_value(record[name]) for name in _AS_JSON}
        # Files of older versions have no column for a third text.
        texts = [one for one in (record["text"], record["second"], record.get("third")) if one is not None]
        text = texts[0] if len(texts) == 1 else texts
        return Explanation.from_dict({"schema": SCHEMA, **values, "text": text})
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"not a row of explanations ({error}).") from None


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)
