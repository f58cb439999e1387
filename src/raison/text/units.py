"""From the characters of tokens to units: the one place that decides which tokens are scored together."""

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence

from raison.core.errors import InputError
from raison.core.inputs.parts import Given, PartedText, plain
from raison.core.inputs.unit import PART, Granularity, Unit
from raison.core.inputs.unit import segments as strings_of
from raison.text.named import named_units
from raison.text.segment import CharacterSpan, merged, sentence_spans, trim, word_spans

_SPANS: dict[Granularity, Callable[[str], list[CharacterSpan]]] = {
    "token": lambda string: [],
    "word": word_spans,
    "sentence": sentence_spans,
}


def find_units(
    text: Given, offsets: Sequence[CharacterSpan], segments: Sequence[int], unit: Granularity, cut: bool = False
) -> tuple[tuple[Unit, ...], tuple[int, ...]]:
    """The units of a text and the number of each token's unit, -1 for special tokens.

    `offsets` are the characters of each token in its own string of the text; `segments` say which string that is (0 or
    1; -1 for a special token). Tokens that share characters share a unit, and a token that covers parts of several
    words or sentences joins them into one unit. White space alone is a unit only between tokens; in larger units it
    belongs to the following one. Units are in the order of the text and hold at least one token each.

    The unit "part" stands for the parts of a PartedText, see raison.text.named; `cut` says that tokens of the text were
    left out. Other units ignore a text's parts. Raises InputError for the unit "part" of a text without any.
    """
    if unit == PART:
        if not isinstance(text, PartedText):
            raise InputError(
                f"the text {text!r:.60} has no parts of its own: give them with units=, or use unit='word'."
            )
        return named_units(text, offsets, segments, cut)
    units: list[Unit] = []
    unit_ids = [-1] * len(offsets)
    for number, string in enumerate(strings_of(plain(text))):
        tokens = [token for token, segment in enumerate(segments) if segment == number]
        spans, owners = _units_of_string(string, [offsets[token] for token in tokens], unit)
        for token, owner in zip(tokens, owners, strict=True):
            unit_ids[token] = len(units) + owner
        units.extend(Unit(start, end, string[start:end], number) for start, end in spans)
    return tuple(units), tuple(unit_ids)


def _units_of_string(
    string: str, offsets: list[CharacterSpan], unit: Granularity
) -> tuple[list[CharacterSpan], list[int]]:
    """Spans of one string's units, and the unit of each of its tokens."""
    cores = [_core(string, start, end) for start, end in offsets]
    anchored = [_makes_unit(string, core, unit) for core in cores]
    anchors = [core for core, makes_unit in zip(cores, anchored, strict=True) if makes_unit]
    if not anchors:
        return _one_unit(string, cores)
    spans = merged(anchors + _SPANS[unit](string))
    starts = [start for start, _ in spans]
    owners = [bisect_right(starts, start) - 1 for start, _ in anchors]
    used = sorted(set(owners))
    numbers = {span: number for number, span in enumerate(used)}
    spans = [spans[span] for span in used]
    spans[0] = (_uncut_start(string, spans[0], min(start for start, _ in anchors)), spans[0][1])
    spans[-1] = (spans[-1][0], _uncut_end(string, spans[-1], max(end for _, end in anchors)))
    return spans, _fill([numbers[owner] for owner in owners], anchored)


def _core(string: str, start: int, end: int) -> CharacterSpan:
    """A token's characters without surrounding white space, or the white space if there is nothing else."""
    start = min(start, len(string))
    end = min(max(start, end), len(string))
    first, last = trim(string, start, end)
    return (first, last) if first < last else (start, end)


def _makes_unit(string: str, core: CharacterSpan, unit: Granularity) -> bool:
    start, end = core
    return start < end and (unit == "token" or not string[start].isspace())


def _one_unit(string: str, cores: list[CharacterSpan]) -> tuple[list[CharacterSpan], list[int]]:
    """One unit of all tokens, if none of them can form a unit: an empty text, or only white space."""
    if not cores:
        return [], []
    whole = _core(string, min(start for start, _ in cores), max(end for _, end in cores))
    return [whole], [0] * len(cores)


def _uncut_start(string: str, span: CharacterSpan, covered: int) -> int:
    """Where the first unit starts: at its first token, if truncation on the left took away some of its tokens."""
    return span[0] if all(_leaves_no_token(character) for character in string[span[0] : covered]) else covered


def _uncut_end(string: str, span: CharacterSpan, covered: int) -> int:
    """Where the last unit ends: at its last token, if truncation took away some of its tokens.

    The cut itself is not marked; missing characters that a normaliser may drop are no sign of a cut.
    """
    end = covered
    while end < span[1] and _leaves_no_token(string[end]):
        end += 1
    return trim(string, span[0], end)[1]


def _leaves_no_token(character: str) -> bool:
    """Whether tokenizers may drop the character: accents, control and format characters, white space, U+FFFD."""
    return character.isspace() or character == "\ufffd" or unicodedata.category(character)[0] in "MC"


def _fill(owners: list[int], anchored: list[bool]) -> list[int]:
    """One unit for each token: tokens without a unit join that of the next token that has one, otherwise the last."""
    filled = []
    position = 0
    for makes_unit in anchored:
        filled.append(owners[min(position, len(owners) - 1)])
        position += makes_unit
    return filled
