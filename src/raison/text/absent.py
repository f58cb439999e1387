"""A text as a reader of plain text sees it when some of its units are absent: deleted, or a string in their place."""

from collections.abc import Sequence

from raison.core.inputs.unit import Text, Unit, segments


def without(text: Text, units: Sequence[Unit], keep: Sequence[bool], substitute: str | None = None) -> Text:
    """The text without the units that are not kept; exactly the text itself if all are kept.

    A `substitute` takes the place of each absent unit, and all white space stays. Without one, an absent unit is
    deleted together with the white space before it; the remaining text then begins without white space. Characters
    outside of units stay.
    """
    strings = []
    for number, string in enumerate(segments(text)):
        string_units = [(unit, stays) for unit, stays in zip(units, keep, strict=True) if unit.segment == number]
        strings.append(_without(string, string_units, substitute))
    if isinstance(text, str):
        return strings[0]
    return (strings[0], strings[1]) if len(strings) == 2 else (strings[0], strings[1], strings[2])


def _without(string: str, units: Sequence[tuple[Unit, bool]], substitute: str | None) -> str:
    pieces, place = [], 0
    for unit, stays in units:
        gap = string[place : unit.start]
        if stays:
            pieces += [gap, string[unit.start : unit.end]]
        elif substitute is not None:
            pieces += [gap, substitute]
        else:
            pieces.append(gap.rstrip())
        place = unit.end
    left = "".join([*pieces, string[place:]])
    if substitute is not None or all(stays for _, stays in units):
        return left
    if not left.strip():
        return ""
    return string[: len(string) - len(string.lstrip())] + left.lstrip()
