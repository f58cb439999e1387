"""Validation of the lines of records when they are read; errors take one line."""

from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.core.settings.reading import Fields
from raison.runs.headers import TEXTS

HIGHEST = 1e300


def check_schema(header: object, path: Path, newest: int) -> None:
    """Raise DataError for something other than a header, or one of a newer version."""
    if not isinstance(header, dict):
        raise DataError(f"cannot read {path}: it does not hold a JSON object.")
    schema = header.get("schema", 0)
    if not isinstance(schema, int) or schema > newest:
        raise DataError(f"{path} was written by a newer version of raison: this one reads schemas up to {newest}.")


def check_record(data: Mapping[str, Any], texts: int, parts: Sequence[int]) -> None:
    """One line of records.jsonl. Raises DataError."""
    line = Fields(data, "a record")
    check_key(line, texts)
    for place, (value, wanted) in enumerate(zip(line.items("scores", len(parts)), parts, strict=True)):
        numbers = value if isinstance(value, list) else [value]
        if len(numbers) != wanted or not all(_number(part) for part in numbers):
            raise DataError(f"not a record: scores[{place}] is {value!r:.40}; it must be {_told(wanted)}.")
    for name in ("evaluations", "gradients", "seconds"):
        line.number(name, 0.0)
    line.string("target")
    line.string("prediction")
    line.whole("units", most=TEXTS)


def check_key(line: Fields, texts: int) -> None:
    """The key of a line: row, seed and text. Raises DataError."""
    line.string("row")
    line.whole("seed", least=None)
    line.whole("text", most=texts - 1)


def check_row(data: Mapping[str, Any], keys: Container[tuple[str, int]]) -> None:
    """DataError for a checked record of a row and seed that its run does not have."""
    if (data["row"], data["seed"]) not in keys:
        raise DataError(f"not a record: the run has no row {data['row']!r:.60} with seed {data['seed']}.")


def check_group(data: Mapping[str, Any]) -> None:
    """One line of groups.jsonl. Raises DataError."""
    line = Fields(data, "a record of groups")
    line.string("row")
    line.string("metric")
    line.whole("seed", least=None)
    for place, group in enumerate(line.items("values")):
        # A group that the metric skipped is empty.
        if not isinstance(group, list) or not all(_number(part) for part in group):
            raise DataError(f"not a record of groups: values[{place}] is {group!r:.40}; it must be numbers.")


def check_training(data: Mapping[str, Any]) -> None:
    """Check the key and the non-numeric fields of a line of trainings.jsonl. Raises DataError."""
    line = Fields(data, "a record")
    for name in ("task", "test", "row", "kind", "method"):
        line.string(name)
    line.whole("seed", least=None)
    line.whole("texts")
    for name in ("settings", "scores", "groups", "history", "explaining"):
        line.mapping(name)


def _number(value: object) -> bool:
    """A finite double-precision number, or null; JSON has no NaN."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= HIGHEST)


def _told(count: int) -> str:
    return "a number or null" if count == 1 else f"a list of {count} numbers"
