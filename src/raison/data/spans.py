"""The format of rationales in files: lists of [start, end] or [start, end, segment]."""

from collections.abc import Sequence
from typing import Any

from raison.core.errors import InputError
from raison.core.inputs.parts import parted
from raison.core.inputs.rationale import Rationale, Span
from raison.core.inputs.unit import Text, Unit, segments


def parse_rationales(value: Any, texts: Sequence[str]) -> tuple[Rationale, ...]:
    """A list of spans (one annotator), or a list of such lists (one per annotator), as rationales.

    Characters are counted from 0 and `end` is not included. [] is one annotator who marked nothing. Raises ValueError
    with the reason for a span outside of the texts.
    """
    if not isinstance(value, list):
        raise ValueError(f"the rationale {_short(value)} is not a list of spans [start, end]")
    if _is_one_annotator(value):
        return (tuple(parse_span(span, texts) for span in value),)
    return tuple(tuple(parse_span(span, texts) for span in spans) for spans in value)


def given_rationales(given: Sequence[Any], texts: Sequence[Text]) -> tuple[tuple[Rationale, ...], ...]:
    """The rationales of texts as a caller gives them: for each text one list of spans per annotator, or a single one.

    Spans are Span or (start, end) or (start, end, segment), as in files; [] is one annotator who marked nothing. Raises
    InputError with the text's number, also for a text without annotators: None, or () as in a Dataset.
    """
    if len(given) != len(texts):
        raise InputError(f"{len(texts)} texts but {len(given)} entries of rationales: give one entry per text.")
    found = []
    for number, (marks, text) in enumerate(zip(given, texts, strict=True)):
        if marks is None or marks == ():
            raise InputError(f"rationales[{number}]: no annotator; leave the text out, or give [] for no mark.")
        try:
            found.append(parse_rationales(_as_in_files(marks), segments(text)))
        except ValueError as error:
            raise InputError(f"rationales[{number}]: {error}.") from None
    return tuple(found)


def parse_span(value: Any, texts: Sequence[str]) -> Span:
    """[start, end] or [start, end, segment] as a span of the texts; ValueError with the reason otherwise."""
    if not _is_numbers(value) or len(value) not in (2, 3):
        raise ValueError(f"the span {_short(value)} is not [start, end] or [start, end, segment]")
    span = Span(*value)
    if not 0 <= span.segment < len(texts):
        raise ValueError(
            f"the span {value} is in text number {span.segment}, but there are {len(texts)}, counted from 0"
        )
    length = len(texts[span.segment])
    if not 0 <= span.start < span.end <= length:
        raise ValueError(f"the span {value} is empty or outside its text of {length} characters")
    return span


def looks_like_rationales(value: Any) -> bool:
    """Whether a cell has the form of spans, of one annotator or of several."""
    if not isinstance(value, list):
        return False
    spans = value if _is_one_annotator(value) else [span for spans in value for span in spans]
    return all(_is_numbers(span) and len(span) in (2, 3) for span in spans)


def looks_like_units(value: Any) -> bool:
    """Whether a cell has the form of spans, with names (an object of lists) or without (a list of lists)."""
    spans = list(_without_nulls(value).values()) if isinstance(value, dict) else value
    return isinstance(spans, list) and all(isinstance(span, list) for span in spans)


def parse_units(value: Any, text: Text) -> tuple[Unit, ...]:
    """[[start, end], ...] or {"name": [start, end], ...} as the parts of a text; ValueError with the reason otherwise.

    In a pair a span has a third number, that of its text. A name without a span (null) is none: where rows name
    different parts, a .parquet file has all names in every row.
    """
    return parted(text, _without_nulls(value) if isinstance(value, dict) else value).parts


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {name: span for name, span in value.items() if span is not None}


def _is_one_annotator(value: list[Any]) -> bool:
    # Three levels of lists are rationales of annotators; an empty list among them is an annotator who marked nothing.
    lists = all(isinstance(part, list) and all(isinstance(span, list) for span in part) for part in value)
    return not value or not lists


def _is_numbers(value: Any) -> bool:
    # In Python a bool is an int, but [true, false] is not a span.
    return isinstance(value, list) and all(isinstance(part, int) and not isinstance(part, bool) for part in value)


def _as_in_files(value: Any) -> Any:
    if isinstance(value, Span):
        return [value.start, value.end, value.segment]
    return [_as_in_files(part) for part in value] if isinstance(value, list | tuple) else value


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
