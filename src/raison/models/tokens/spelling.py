"""Whether tokens spell a text as it was given: a tokenizer may normalise accents, cases and spaces."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from raison.core.errors import InputError
from raison.core.note_names import RESPELLED
from raison.text.segment import CharacterSpan

SEPARATE = "the prompt's last and the output's first characters would form one token; they were kept separate"
LONG = 2000
"""Characters of a part that is compared character by character, which takes less than a second."""
_WORD = re.compile(r"\S+")


def respelled(given: str, spelled: str) -> dict[str, object]:
    """A note if the tokens of a text spell another one, apart from white space around it."""
    if given.strip() == spelled.strip():
        return {}
    return {RESPELLED: f"the tokenizer does not keep the given text: its tokens spell {spelled.strip()!r:.200}"}


def spelled_spans(given: str, spelled: str, spans: Sequence[CharacterSpan]) -> list[CharacterSpan]:
    """Where spans of a given text are in what its tokens spell. A changed character belongs to a span as a whole.

    Spans outside of the given text stay outside. Raises InputError if a long word, or a long text with other spaces, is
    spelled differently, because comparing those takes minutes.
    """
    if given == spelled:
        return list(spans)
    starts, ends = [len(spelled)] * (len(given) + 1), [0] * (len(given) + 1)
    for kind, first, last, there, to in _alignment(given, spelled):
        for place in range(first, last):
            inside = place - first if kind == "equal" else 0
            starts[place] = there + inside
            ends[place + 1] = there + inside + 1 if kind == "equal" else to
    longer = len(spelled) - len(given)
    return [
        (
            starts[start] if 0 <= start <= len(given) else start + longer,
            ends[end] if 0 <= end <= len(given) else end + longer,
        )
        for start, end in spans
    ]


def _alignment(given: str, spelled: str) -> Iterator[tuple[str, int, int, int, int]]:
    """Parts of both texts that are equal or changed, in order, as difflib gives them: word by word if there are as many
    words, which takes time in proportion to the text."""
    words, others = ([match.span() for match in _WORD.finditer(text)] for text in (given, spelled))
    if len(words) != len(others):
        words, others = [(0, len(given))], [(0, len(spelled))]
    last, to = 0, 0
    for (first, end), (there, after) in zip(words, others, strict=True):
        yield "replace", last, first, to, there
        for kind, i, j, k, m in _compared(given[first:end], spelled[there:after]):
            yield kind, first + i, first + j, there + k, there + m
        last, to = end, after
    yield "replace", last, len(given), to, len(spelled)


def _compared(given: str, spelled: str) -> Sequence[tuple[str, int, int, int, int]]:
    if given == spelled:
        return [("equal", 0, len(given), 0, len(spelled))]
    if max(len(given), len(spelled)) > LONG:
        raise InputError(
            f"the statements are spans of an answer whose tokens spell another text, {spelled!r:.200}: give the answer "
            "and the spans as they are there, or leave statements out."
        )
    return SequenceMatcher(None, given, spelled, autojunk=False).get_opcodes()
