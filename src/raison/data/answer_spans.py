"""The answer format of files: parts of a context, given by their text and start character."""

from collections.abc import Mapping
from typing import Any

from raison.core.targets.answer import Answer


def parse_answers(value: Any, context: str) -> tuple[Answer, ...]:
    """{"text": [...], "answer_start": [...]}, or a list of {"text": ..., "answer_start": ...}, as answers.

    Characters are counted from 0. No answer at all is (). Raises ValueError with the reason if an answer's text is not
    found where it should start.
    """
    if value is None:
        return ()
    return tuple(_answer(text, start, context) for text, start in _pairs(value))


def looks_like_answers(value: Any) -> bool:
    """Whether a cell has the form of answers."""
    items = [value] if isinstance(value, Mapping) else value if isinstance(value, list) else []
    return bool(items) and all(isinstance(item, Mapping) and {"text", "answer_start"} <= set(item) for item in items)


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        texts, starts = value.get("text"), value.get("answer_start")
        if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
            raise ValueError("the answers have different numbers of texts and starts ('text' and 'answer_start')")
        return list(zip(texts, starts, strict=True))
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise ValueError(f"the answers {value!r:.40} are not a list of 'text' and 'answer_start'")
    return [(item.get("text"), item.get("answer_start")) for item in value]


def _answer(text: Any, start: Any, context: str) -> Answer:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"the answer {text!r:.40} is not a string")
    # In Python a bool is an int, but true is not a position.
    if not isinstance(start, int) or isinstance(start, bool) or start < 0:
        raise ValueError(f"the answer {text!r:.40} starts at {start!r:.20}, which is not a position in the context")
    if not context.startswith(text, start):
        raise ValueError(f"the context does not contain {text!r:.40} at character {start}")
    return Answer(start, start + len(text), text)
