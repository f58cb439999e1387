"""Questions with their sources from a file, one per row: plain rows, or traces in OpenInference's convention."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.data.columns import ID_NAMES, TEXT_NAMES, Column, existing
from raison.data.dataset import BrokenLine, Dataset, Row
from raison.data.lines import LineRecord, read_records
from raison.data.question_rows import Gold, QuestionRow
from raison.data.rows import Entry, first_rows
from raison.data.streams import Item, Reading
from raison.jobs.file_digest import sha256_of

KINDS = (".jsonl", ".parquet")
_INDEX = re.compile(r"\d+")
_OF_SPANS = ("llm.", "retrieval.", "input.", "output.", "openinference.")
"""How names of attributes begin in OpenInference's convention."""


def read_questions(path: Path) -> list[QuestionRow]:
    """The rows of a .jsonl or .parquet file. Raises DataError that names the line."""
    rows = []
    for _, entry in _entries(path, None):
        if isinstance(entry, BrokenLine):
            raise DataError(entry.reason)
        assert entry.asked is not None
        rows.append(entry.asked)
    if not rows:
        raise DataError(f"{path} has no question.")
    return rows


def stream_questions(sources: Sequence[str], reading: Reading) -> Iterator[Item]:
    """The rows of all files in order, one in memory at a time, up to the limit; traces are read a file at a time.

    Raises DataError for a file that cannot be read.
    """
    entries = (
        (source, *one) for source in sources for one in _entries(Path(source), reading.id_column, reading.encoding)
    )
    for row, (source, row_id, entry) in enumerate(islice(entries, reading.limit)):
        yield Item(row, source, row_id or f"{Path(source).name}:{entry.number}", "", entry)


def row_of(cells: Mapping[str, Any], number: int, place: str) -> QuestionRow:
    """A row from "question" or "messages", "sources", "answer" and "gold". Raises DataError that names its place."""
    question_cell = cells.get("messages") or cells.get("question")
    if question_cell is None or not isinstance(question_cell, str | list):
        raise DataError(f"{place} has no question: give 'question' (a string), or 'messages' (a list).")
    answer = cells.get("answer")
    if answer is not None and not isinstance(answer, str):
        raise DataError(f"{place}: the answer is {answer!r:.40}; it must be a string.")
    given = cells.get("sources")
    if given is None and isinstance(question_cell, str):
        raise DataError(f"{place} has no sources: give 'sources' ({{'id': 'text'}}, or a list of texts).")
    if not isinstance(question_cell, str) and not all(isinstance(one, Mapping) for one in question_cell):
        wrong = next(one for one in question_cell if not isinstance(one, Mapping))
        raise DataError(f"{place}: {wrong!r:.60} is not a chat message: give objects with 'role' and 'content'.")
    question = question_cell if isinstance(question_cell, str) else tuple(question_cell)
    sources = None if given is None else _sources(given, place)
    return QuestionRow(number, question, sources, answer, _gold(cells.get("gold"), sources or {}, place))


def holds_questions(path: Path, encoding: str = "utf-8") -> bool:
    """Whether a file has questions with their sources, by its first row."""
    if path.suffix.lower() not in KINDS or not path.is_file():
        return False
    try:
        first = next(iter(read_records(path, encoding)), None)
    except DataError:
        # Whoever reads the rows says what is wrong.
        return False
    cells = None if first is None else first.cells
    if not isinstance(cells, Mapping):
        return False
    if {"question", "sources"} <= {*cells}:
        return True
    # Files of texts have columns of these names, too.
    of_texts = any(isinstance(cells.get(name), str) for name in TEXT_NAMES if name != "question")
    return not of_texts and (_is_chat(cells) or _is_span(cells))


def _is_chat(cells: Mapping[str, Any]) -> bool:
    messages = cells.get("messages")
    return isinstance(messages, list) and all(isinstance(one, Mapping) and "role" in one for one in messages)


def _is_span(cells: Mapping[str, Any]) -> bool:
    attributes = cells.get("attributes")
    if not isinstance(attributes, Mapping):
        return False
    return not {"trace_id", "context"}.isdisjoint(cells) or any(key.startswith(_OF_SPANS) for key in _flat(attributes))


def load_questions(path: Path, limit: int | None = None, *, skip_bad: bool = False, encoding: str = "utf-8") -> Dataset:
    """The file's questions as a data set without labels.

    `limit` and `skip_bad` are those of `load_file`. Raises DataError and InputError.
    """
    entries = (entry for _, entry in _entries(path, None, encoding))
    rows, broken = first_rows(entries, limit, skip_bad, lambda line: line.reason)
    if not rows:
        raise DataError(f"{path} has no question." + (f" {broken[0].reason}" if broken else ""))
    name = "/".join(path.resolve().parts[-2:])
    return Dataset(name, rows, broken, sha256=sha256_of([path]))


def _entries(path: Path, id_column: Column | None, encoding: str = "utf-8") -> Iterator[tuple[str, Entry]]:
    """Each row, or the reason why it cannot be used, with its own id or its trace's; "" without one. The first row
    decides the format."""
    if not path.is_file():
        raise DataError(f"{path} is not a file.")
    if path.suffix.lower() not in KINDS:
        raise DataError(f"cannot read questions from {path.name}: give a file that ends in {' or '.join(KINDS)}.")
    records = read_records(path, encoding)
    head = list(islice(records, 1))
    first = next((record.cells for record in head if isinstance(record.cells, Mapping)), {})
    traces = "attributes" in first
    if traces and id_column is not None:
        raise DataError(f"{path}: rows of traces have their traces' ids: leave out the column of ids.")
    ids: Sequence[str] = ID_NAMES
    if id_column is not None:
        # A first line that is broken has no columns.
        ids = existing(id_column, [*first]) if first else (str(id_column),)
    spans: list[LineRecord] = []
    for record in chain(head, records):
        if record.broken or not isinstance(record.cells, Mapping):
            reason = record.broken or "expected an object"
            yield "", BrokenLine(record.number, f"line {record.number} of {path} is not a valid row: {reason}.")
        elif not traces:
            yield _own_id(record.cells, ids), _entry(record, path)
        elif "attributes" in record.cells:
            spans.append(record)
    yield from _traced(spans, path)


def _own_id(cells: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((str(cells[name]).strip() for name in names if cells.get(name) is not None), "")


def _entry(record: LineRecord, path: Path) -> Entry:
    cells: Any = record.cells
    try:
        row = row_of(cells, record.number, f"line {record.number} of {path}")
    except DataError as error:
        return BrokenLine(record.number, str(error))
    return Row(row.title, None, row.number, asked=row)


def _gold(given: Any, sources: Mapping[str, str], place: str) -> tuple[Gold, ...]:
    """The gold sources: "gold" is an id, or a list of ids and of objects with "source" and "text", or "start" and
    "end"."""
    gold = []
    for one in [] if given is None else given if isinstance(given, list) else [given]:
        cells = one if isinstance(one, Mapping) else {"source": one}
        name, text = cells.get("source"), cells.get("text")
        if not isinstance(name, str) or (sources and name not in sources):
            raise DataError(f"{place}: gold names {name!r:.40}, which is not one of the sources {', '.join(sources)}.")
        start, end = cells.get("start", 0), cells.get("end")
        if text is not None:
            start = sources.get(name, "").find(text) if isinstance(text, str) and text.strip() else -1
            end = start + len(str(text))
        whole = len(sources.get(name, ""))
        if type(start) is not int or start < 0 or (end is not None and (type(end) is not int or not start < end)):
            raise DataError(f"{place}: gold is {one!r:.60}, which is not part of the source '{name}'.")
        if sources and (start >= whole or (end or 0) > whole):
            raise DataError(f"{place}: gold is {one!r:.60}, which is not part of the source '{name}'.")
        gold.append(Gold(name, start, end))
    return tuple(gold)


def _sources(given: Any, place: str) -> dict[str, str]:
    """Texts by id, from an object, a list of texts, or a list of objects with "id" and "text"."""
    if isinstance(given, Mapping):
        # Parquet has a column for every id of the file.
        pairs = [(name, text) for name, text in given.items() if text is not None]
    elif isinstance(given, list):
        pairs = [
            (str(one.get("id", number)), one.get("text")) if isinstance(one, Mapping) else (str(number), one)
            for number, one in enumerate(given, 1)
        ]
    else:
        pairs = []
    if not pairs or not all(isinstance(text, str) for _, text in pairs):
        raise DataError(f"{place}: sources are {given!r:.60}; give {{'id': 'text'}}, or a list of texts.")
    if len(dict(pairs)) < len(pairs):
        raise DataError(f"{place}: two sources have the same id.")
    return dict(pairs)


_Spans = list[tuple[int, dict[str, Any]]]
"""Lines with the spans of a trace, whose attributes have dotted names."""


def _traced(spans: list[LineRecord], path: Path) -> Iterator[tuple[str, Entry]]:
    """One row for each trace, with the trace's id."""
    traces: dict[str, _Spans] = {}
    for span in spans:
        cells: Any = span.cells
        if not isinstance(cells["attributes"], Mapping):
            reason = f"line {span.number} of {path}: the attributes of a span must be an object."
            yield "", BrokenLine(span.number, reason)
            continue
        context = cells.get("context")
        trace = cells.get("trace_id") or (context.get("trace_id") if isinstance(context, Mapping) else None)
        traces.setdefault(str(trace or f"line {span.number}"), []).append((span.number, _flat(cells["attributes"])))
    for name, held in traces.items():
        row = _of_trace(held)
        number = held[0][0]
        reason = (
            f"line {number} of {path}: the trace has no llm.input_messages, and no input.value with "
            "retrieval.documents."
        )
        yield name, BrokenLine(number, reason) if row is None else Row(row.title, None, number, asked=row)


def _of_trace(held: _Spans) -> QuestionRow | None:
    """The row of a trace: its retrieved documents, and the messages and the answer of its last language model."""
    documents = [one for _, flat in held for one in _listed(flat, "retrieval.documents", "document")]
    writing = [flat for _, flat in held if _listed(flat, "llm.input_messages", "message")]
    messages = _listed(writing[-1], "llm.input_messages", "message") if writing else []
    outputs = _listed(writing[-1], "llm.output_messages", "message") if writing else []
    traced_input = next((flat["input.value"] for _, flat in held if isinstance(flat.get("input.value"), str)), None)
    sources = {str(one.get("id", place)): str(one.get("content", "")) for place, one in enumerate(documents, 1)}
    answer = outputs[0].get("content") if outputs else None
    if messages:
        question: Any = tuple({"role": one.get("role", ""), "content": one.get("content", "")} for one in messages)
        texts = "\n".join(str(message["content"]) for message in question)
        # A retrieved document that the model did not see is no source of its answer.
        used = {name: text for name, text in sources.items() if text.strip() and text.strip() in texts}
        return QuestionRow(held[0][0], question, used or None, answer)
    return QuestionRow(held[0][0], traced_input, sources, answer) if traced_input is not None and sources else None


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Attributes by their dotted names, whether they are nested or flat already."""
    if isinstance(value, Mapping) and value:
        items = value.items()
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        items = {str(place): one for place, one in enumerate(value)}.items()
    else:
        return {name: value}
    return {key: one for part, inner in items for key, one in _flat(inner, f"{name}.{part}" if name else part).items()}


def _listed(flat: Mapping[str, Any], name: str, kind: str) -> list[dict[str, Any]]:
    """The objects of a list such as "llm.input_messages.0.message.role", in order."""
    items: dict[int, dict[str, Any]] = {}
    for key, value in flat.items():
        if key.startswith(f"{name}."):
            index, _, rest = key.removeprefix(f"{name}.").partition(".")
            if _INDEX.fullmatch(index) and rest.startswith(f"{kind}."):
                items.setdefault(int(index), {})[rest.removeprefix(f"{kind}.")] = value
    return [items[index] for index in sorted(items)]
