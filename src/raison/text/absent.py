"""A text as a reader of plain text sees it when some of its units are absent: deleted, or a string in their place."""

from collections.abc import Sequence

from raison.core.inputs.unit import Text, Unit, segments


def without(text: Text, units: Sequence[Unit], keep: Sequence[bool], substitute: str | None = None) -> Text:
    """The text without the units that are not kept; exactly the text itself if all are kept.

    A `substitute` takes the place of each absent unit, and all white space stays. Without one, an absent unit is
    deleted together with the white space before it; the remaining text then begins without white space. Characters
    outside of units stay.
    """
    absent = [number for number, stays in enumerate(keep) if not stays]
    strings = []
    for segment, string in enumerate(segments(text)):
        strings.append(_without(string, units, [one for one in absent if units[one].segment == segment], substitute))
    if isinstance(text, str):
        return strings[0]
    return (strings[0], strings[1]) if len(strings) == 2 else (strings[0], strings[1], strings[2])


def _without(string: str, units: Sequence[Unit], absent: Sequence[int], substitute: str | None) -> str:
    """One string without its absent units, given by their numbers. Only these are walked: a text may have thousands."""
    pieces, place = [], 0
    for number in absent:
        unit, before = units[number], units[number - 1] if number else None
        # The white space of the unit before, if it has any, stays.
        kept = before.end if before is not None and before.segment == unit.segment else 0
        middle = max(place, kept)
        gap = string[middle : unit.start]
        pieces += [string[place:middle], gap.rstrip() if substitute is None else gap + substitute]
        place = unit.end
    left = "".join([*pieces, string[place:]])
    if substitute is not None or not absent:
        return left
    if not left.strip():
        return ""
    return string[: len(string) - len(string.lstrip())] + left.lstrip()
