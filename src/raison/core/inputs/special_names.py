"""Names of special tokens in a text, which is read as it is written. This file never needs torch."""

from collections.abc import Collection, Mapping
from typing import Any

from raison.core.inputs.unit import Text, segments
from raison.core.note_names import READ_AS_TEXT


def noted(text: Text, names: Collection[str]) -> dict[str, list[str]]:
    """A note with the names that a text contains, or none."""
    found = sorted(name for name in names if any(name in part for part in segments(text)))
    return {READ_AS_TEXT: found} if found else {}


def caution_of_names(notes: Mapping[str, Any]) -> str | None:
    """A sentence, without its full stop, about the names that an explanation's notes list."""
    names = notes.get(READ_AS_TEXT)
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        return None
    listed = ", ".join(f"{name:.40}" for name in names[:4])
    if len(names) == 1:
        return f"{listed} in the text is read as it is written, and not as a special token"
    return f"{listed} in the text are read as they are written, and not as special tokens"
