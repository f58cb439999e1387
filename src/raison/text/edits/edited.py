"""A text with one edit, and how its units correspond to those of the original text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from raison.core.inputs.parts import Given, again
from raison.core.inputs.unit import Text, Unit, segments
from raison.text.segment import CharacterSpan

Group = tuple[tuple[int, ...], tuple[int, ...]]
"""Numbers of units before the edit, and of the corresponding units after it."""


@dataclass(frozen=True, slots=True)
class Edited:
    """`text` after an edit of its string number `segment`: the characters `new` replace `old`.

    All other characters are as they were. Where `old` is empty, `new` was created.
    """

    text: Text
    segment: int
    old: CharacterSpan
    new: CharacterSpan

    def groups(self, before: Sequence[Unit], after: Sequence[Unit]) -> list[Group]:
        """The smallest groups of units that correspond, in the order of the text.

        The edited characters correspond as a whole: "it is" became "it's". A unit that corresponds to nothing (created,
        or cut off) is in no group.
        """
        places = [(unit.segment, unit.start, unit.end, False, number) for number, unit in enumerate(before)]
        places += [(unit.segment, *self._place(unit), True, number) for number, unit in enumerate(after)]
        groups: list[tuple[list[int], list[int]]] = []
        reached = (-1, -1)
        for segment, start, end, is_after, number in sorted(places):
            if start == end:
                continue
            # All places are in the original text: units that share characters there belong together.
            if (segment, start) >= reached:
                groups.append(([], []))
            reached = max(reached, (segment, end))
            groups[-1][is_after].append(number)
        return [(tuple(sorted(old)), tuple(sorted(new))) for old, new in groups if old and new]

    def given(self, units: Sequence[Unit], unit: str) -> Given:
        """The edited text in the form of the original, which had these units: parts move with their characters.

        Text that is created at the border of a part does not belong to it.
        """
        strings = segments(self.text)
        moved = [
            replace(part, start=self._after(part.start, part.segment), end=self._after(part.end, part.segment))
            for part in units
        ]
        moved_parts = [replace(part, text=strings[part.segment][part.start : part.end]) for part in moved]
        return again(self.text, tuple(part for part in moved_parts if part.text.strip()), unit)

    def _after(self, place: int, segment: int) -> int:
        """The place of a unit's border after the edit.

        A border within the edited characters moves to their end: they belong to the first of the units that share them.
        """
        if segment != self.segment or place <= self.old[0]:
            return place
        return self.new[1] if place < self.old[1] else place + self.new[1] - self.old[1]

    def _place(self, unit: Unit) -> CharacterSpan:
        """The origin of the unit's characters; an empty span if they are new."""
        if unit.segment != self.segment:
            return (unit.start, unit.end)
        start, end = unit.start, unit.end
        moved = self.new[1] - self.old[1]
        if start >= self.new[0]:
            start = self.old[0] if start < self.new[1] else start - moved
        if end > self.new[0]:
            end = self.old[1] if end <= self.new[1] else end - moved
        return (start, end)
