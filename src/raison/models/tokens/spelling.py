"""Whether tokens spell a text as it was given: a tokenizer may normalise accents, cases and spaces."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from raison.core.note_names import RESPELLED
from raison.text.segment import CharacterSpan


def respelled(given: str, spelled: str) -> dict[str, object]:
    """A note if the tokens of a text spell another one, apart from white space around it."""
    if given.strip() == spelled.strip():
        return {}
    return {RESPELLED: f"the tokenizer does not keep the given text: its tokens spell {spelled.strip()!r:.200}"}


def spelled_spans(given: str, spelled: str, spans: Sequence[CharacterSpan]) -> list[CharacterSpan]:
    """Where spans of a given text are in what its tokens spell. A changed character belongs to a span as a whole.

    Spans outside of the given text stay outside.
    """
    if given == spelled:
        return list(spans)
    starts, ends = list(range(len(given) + 1)), list(range(len(given) + 1))
    for kind, first, last, there, to in SequenceMatcher(None, given, spelled, autojunk=False).get_opcodes():
        for place in range(first, last + 1):
            if kind == "equal":
                starts[place] = ends[place] = there + place - first
            else:
                # At its beginning, a change has not begun for what ends there; at its end, it is over.
                starts[place] = to if place == last else there
                ends[place] = there if place == first else to
    longer = len(spelled) - len(given)
    return [
        (
            starts[start] if 0 <= start <= len(given) else start + longer,
            ends[end] if 0 <= end <= len(given) else end + longer,
        )
        for start, end in spans
    ]
