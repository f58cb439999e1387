"""The parts of a text as units, named by a caller or found in the text: which tokens belong to which part."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from raison.core.errors import InputError
from raison.core.inputs.parts import PartedText, spelled
from raison.core.inputs.unit import Unit, segments
from raison.text.segment import CharacterSpan, merged, trim


def named_units(
    given: PartedText, offsets: Sequence[CharacterSpan], owners: Sequence[int], cut: bool
) -> tuple[tuple[Unit, ...], tuple[int, ...]]:
    """The parts as units and the number of each token's unit, -1 for what lies outside them.

    A token belongs to the part that has one of its characters, so a span that cuts a token is extended to the whole
    token, and to tokens that share characters with it. White space alone goes with the token after it, as it does in
    words. If tokens were `cut` off, so are their characters, and parts that lost all of theirs. Raises InputError for
    two parts that meet inside a token, and for a part whose characters the tokenizer drops, unless they were found.
    """
    given = joined_parts(given, offsets, owners)
    cores: list[list[CharacterSpan]] = [[] for _ in given.parts]
    numbers = [-1] * len(offsets)
    for segment, string in enumerate(segments(given.text)):
        parts = _PartSpans(given.parts, segment)
        trimmed = {token: trim(string, *offsets[token]) for token, owner in enumerate(owners) if owner == segment}
        spoken = {token: core for token, core in trimmed.items() if core[0] < core[1]}
        # Tokens that share characters belong together.
        blocks = merged(list(spoken.values()))
        starts = [start for start, _ in blocks]
        for token, core in spoken.items():
            block = blocks[bisect_right(starts, core[0]) - 1]
            numbers[token] = parts.holding(block, string)
            if numbers[token] >= 0:
                cores[numbers[token]].append(block)
        # At the end of a text there is no token after it.
        follows = numbers[max(spoken)] if spoken else -1
        for token in reversed(trimmed):
            follows = numbers[token] = numbers[token] if token in spoken else follows
    units, kept = _units(given, cores, _read(given, offsets, owners), cut)
    return units, tuple(kept.get(number, -1) for number in numbers)


def joined_parts(given: PartedText, offsets: Sequence[CharacterSpan], owners: Sequence[int]) -> PartedText:
    """Found parts that meet inside a token as one part, without those that have no token; a caller's as they are."""
    if not given.found:
        return given
    joined: list[Unit] = []
    for segment, string in enumerate(segments(given.text)):
        parts = [part for part in given.parts if part.segment == segment]
        cores = [trim(string, *offset) for offset, owner in zip(offsets, owners, strict=True) if owner == segment]
        cores = [core for core in cores if core[0] < core[1]]
        starts = [start for start, _ in merged([*cores, *((part.start, part.end) for part in parts)])]
        spoken = {bisect_right(starts, start) for start, _ in cores}
        groups: dict[int, list[Unit]] = {}
        for part in parts:
            groups.setdefault(bisect_right(starts, part.start), []).append(part)
        joined += [
            replace(group[0], end=group[-1].end, text=string[group[0].start : group[-1].end])
            for place, group in groups.items()
            if place in spoken
        ]
    return replace(given, parts=tuple(joined)) if joined else given


def extended(given: PartedText, units: Sequence[Unit]) -> tuple[int, ...]:
    """The numbers of the units that have more characters than their parts, because a part cuts a token."""
    return tuple(
        number
        for number, unit in enumerate(units)
        if not any(
            part.segment == unit.segment and part.start <= unit.start and unit.end <= part.end for part in given.parts
        )
    )


class _PartSpans:
    """The parts of one string, with their places."""

    def __init__(self, parts: Sequence[Unit], segment: int) -> None:
        self._numbers = [number for number, part in enumerate(parts) if part.segment == segment]
        self._parts = parts
        self._starts = [parts[number].start for number in self._numbers]

    def holding(self, core: CharacterSpan, string: str) -> int:
        """The part with a character of the token, -1 if there is none; InputError if there are two."""
        start, end = core
        last = bisect_right(self._starts, end - 1) - 1
        if last < 0 or self._parts[self._numbers[last]].end <= start:
            return -1
        number = self._numbers[last]
        if last > 0 and self._parts[self._numbers[last - 1]].end > start:
            before = self._numbers[last - 1]
            raise InputError(
                f"{spelled(self._parts[before], before)} and {spelled(self._parts[number], number)} meet inside the "
                f"token {string[start:end]!r:.40} ({start} to {end}): move the border to one of its ends."
            )
        return number


def _read(given: PartedText, offsets: Sequence[CharacterSpan], owners: Sequence[int]) -> list[CharacterSpan]:
    """The start of the first token and the end of the last one in each string."""
    spans = []
    for segment in range(len(segments(given.text))):
        part_offsets = [offset for offset, owner in zip(offsets, owners, strict=True) if owner == segment]
        spans.append(
            (min((start for start, _ in part_offsets), default=0), max((end for _, end in part_offsets), default=0))
        )
    return spans


def _units(
    given: PartedText, cores: Sequence[Sequence[CharacterSpan]], read: Sequence[CharacterSpan], cut: bool
) -> tuple[tuple[Unit, ...], dict[int, int]]:
    """The units, and the numbers of the parts that became them."""
    strings = segments(given.text)
    units: list[Unit] = []
    kept: dict[int, int] = {}
    for number, (part, token_spans) in enumerate(zip(given.parts, cores, strict=True)):
        if not token_spans:
            if not cut:
                raise InputError(f"{spelled(part, number)} has no token: the tokenizer drops its characters.")
            continue
        first, last = (read[part.segment][0], read[part.segment][1]) if cut else (part.start, part.end)
        start = min(max(part.start, first), *(start for start, _ in token_spans))
        end = max(min(part.end, last), *(end for _, end in token_spans))
        kept[number] = len(units)
        units.append(replace(part, start=start, end=end, text=strings[part.segment][start:end]))
    return tuple(units), kept
