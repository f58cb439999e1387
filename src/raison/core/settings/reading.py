"""Validation of external values, one by one: one line says which is wrong and what it must be."""

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from raison.core.errors import DataError
from raison.core.inputs.unit import Unit

NAME = 200
"""Maximum length in characters of the name of a unit, a method, a quantity or a version."""
DEPTH = 32
"""Maximum depth of the lists and objects in settings and notes."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a JSON object that should be `what` ("an explanation"). Every accessor raises DataError."""

    data: Mapping[str, Any]
    what: str

    def refuse(self, name: str, expected: str) -> NoReturn:
        """DataError that shows the field and says what it must be."""
        raise DataError(f"not {self.what}: {name} is {self.data.get(name)!r:.40}; it must be {expected}.")

    def need(self, names: Sequence[str]) -> None:
        """DataError unless all of these are there."""
        missing = sorted(set(names) - set(self.data))
        if missing:
            raise DataError(f"not {self.what}: the fields {', '.join(missing)} are missing.")

    def schema(self, newest: int) -> None:
        """DataError for a form that a newer version of raison wrote."""
        schema = self.data.get("schema", newest)
        if not _whole(schema) or schema < 1:
            self.refuse("schema", "a whole number of at least 1")
        if schema > newest:
            raise DataError(
                f"this is {self.what} of schema {schema!r:.40}; this version of raison reads up to {newest}."
            )

    def string(self, name: str, most: int | None = None) -> str:
        """A string with at most `most` characters."""
        value = self.data.get(name)
        if not isinstance(value, str) or (most is not None and len(value) > most):
            self.refuse(name, "a string" if most is None else f"a string of at most {most} characters")
        return value

    def optional_string(self, name: str) -> str | None:
        """A string, or None for null."""
        return None if self.data.get(name) is None else self.string(name)

    def inner(self, name: str) -> "Fields":
        """An object as Fields."""
        return Fields(self.mapping(name), f"{self.what}: {name}")

    def optional_number(self, name: str) -> float:
        """A finite number, or NaN for null."""
        return math.nan if self.data.get(name) is None else self.number(name)

    def optional_numbers(self, name: str) -> tuple[float, ...]:
        """A list of finite numbers, with NaN for each null."""
        places = {str(place): value for place, value in enumerate(self.items(name))}
        inside = Fields(places, f"{self.what}: {name}")
        return tuple(map(inside.optional_number, places))

    def number(self, name: str, least: float = -math.inf, most: float = math.inf) -> float:
        """A finite number between two others."""
        value = self.data.get(name)
        if not _within(value, least, most):
            least_words = f" of at least {least:g}" if least > -math.inf else ""
            between = f" from {least:g} to {most:g}" if most < math.inf else least_words
            self.refuse(name, f"a finite number{between}")
        return float(value)  # type: ignore[arg-type]

    def whole(self, name: str, least: int | None = 0, most: int = 2**63 - 1) -> int:
        """A whole number, from `least` to `most`: what 64 bits hold."""
        self._whole(name, self.data.get(name), least, most)
        return int(self.data[name])

    def wholes(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers of at least 0."""
        values = self.items(name)
        for value in values:
            self._whole(name, value, 0, 2**63 - 1)
        return values

    def _whole(self, name: str, value: object, least: int | None, most: int) -> None:
        if not _whole(value) or not (-most if least is None else least) <= value <= most:  # type: ignore[operator]
            bounds = f" of at least {least}" if most == 2**63 - 1 else f" from {least} to {most:,}"
            raise DataError(
                f"not {self.what}: {name} is {value!r:.40}; it must be a whole number{'' if least is None else bounds}."
            )

    def choice(self, name: str, allowed: Sequence[str]) -> None:
        """One of these words."""
        value = self.data.get(name)
        if not isinstance(value, str) or value not in allowed:
            self.refuse(name, f"one of {', '.join(allowed)}")

    def objects(self, name: str) -> Iterator["Fields"]:
        """A list of objects, each as Fields."""
        for place, item in enumerate(self.items(name)):
            if not isinstance(item, dict):
                raise DataError(f"not {self.what}: {name}[{place}] is {item!r:.40}; it must be an object.")
            yield Fields(item, f"{self.what}: {name}[{place}]")

    def flag(self, name: str) -> None:
        """True or false."""
        if not isinstance(self.data.get(name), bool):
            self.refuse(name, "true or false")

    def mapping(self, name: str) -> dict[str, Any]:
        """An object."""
        value = self.data.get(name)
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            self.refuse(name, "an object")
        return value

    def plain(self, name: str) -> dict[str, Any]:
        """An object of JSON values that nest at most DEPTH deep, with finite numbers."""
        values = self.mapping(name)
        for key, value in values.items():
            if not _is_plain(value, DEPTH):
                raise DataError(
                    f"not {self.what}: {name} has under {key!r:.40} a number that is not finite, or values that nest "
                    f"more than {DEPTH} deep."
                )
        return values

    def strings(self, name: str, count: int | None = None) -> tuple[str, ...]:
        """A list of strings, of length `count` if given."""
        values = self.items(name, count)
        if not all(isinstance(value, str) for value in values):
            self.refuse(name, "a list of strings")
        return values

    def numbers(
        self, name: str, count: int | None, least: float = -math.inf, most: float = math.inf
    ) -> tuple[float, ...]:
        """A list of finite numbers between two others, of length `count` if given."""
        values = self.items(name, count)
        for place, value in enumerate(values):
            if not _within(value, least, most):
                between = "" if least == -math.inf else f" between {least:g} and {most:g}"
                raise DataError(f"not {self.what}: {name}[{place}] is {value!r:.40}, not a finite number{between}.")
        return tuple(map(float, values))

    def items(self, name: str, count: int | None = None) -> tuple[Any, ...]:
        """A list, of length `count` if given."""
        values = self.data.get(name)
        if not isinstance(values, list | tuple):
            self.refuse(name, "a list")
        if count is not None and len(values) != count:
            raise DataError(f"not {self.what}: {name} has {len(values)} items; it must have {count}.")
        return tuple(values)

    def units(self, texts: Sequence[str]) -> tuple[Unit, ...]:
        """Character spans within the texts, in order, without overlaps; several may be one character's tokens."""
        read: list[Unit] = []
        for place, item in enumerate(self.items("units")):
            fields = Fields(item, f"{self.what}: unit {place}") if isinstance(item, dict) else None
            if fields is None or not set(item) <= {"start", "end", "text", "segment", "name"}:
                raise DataError(f"not {self.what}: units[{place}] is {item!r:.60}; it must be a span.")
            fields.whole("start")
            fields.whole("end")
            fields.string("text")
            if "name" in item:
                fields.string("name", NAME)
            segment = item.get("segment", 0)
            if not _whole(segment) or not 0 <= segment < len(texts):
                fields.refuse("segment", f"a number below {len(texts)}")
            unit = Unit(item["start"], item["end"], item["text"], segment, item.get("name", ""))
            after = read[-1] if read else Unit(0, 0, "", 0)
            if not unit.start <= unit.end <= len(texts[unit.segment]):
                fields.refuse("end", f"between its start and the text's end, {len(texts[unit.segment])}")
            if unit.text != texts[unit.segment][unit.start : unit.end]:
                fields.refuse("text", f"the text's characters {unit.start} to {unit.end}")
            shared = (after.segment, after.start, after.end) == (unit.segment, unit.start, unit.end)
            if not shared and (after.segment, after.end) > (unit.segment, unit.start):
                fields.refuse("start", "at or after the end of the unit before")
            read.append(unit)
        return tuple(read)


def json_value(text: str | bytes, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """`json.loads`; `pairs` makes an object of its pairs. Raises ValueError, also for values that nest too deeply."""
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except RecursionError:
        raise ValueError("its values nest too deeply") from None


def toml_value(text: str) -> dict[str, Any]:
    """`tomllib.loads`. Raises ValueError, also for values that nest too deeply."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its values nest too deeply") from None


def parse(text: str, what: str, several: str = "") -> dict[str, Any]:
    """A JSON object. Raises DataError; that for a list ends with `several`, which says what reads it."""
    data = _parsed(text, what)
    if not isinstance(data, dict):
        raise DataError(f"not {what}: expected a JSON object{several if isinstance(data, list) else ''}.")
    return data


def parse_list(text: str, what: str, single: str) -> list[dict[str, Any]]:
    """A JSON array of objects. Raises DataError; that for a single object ends with `single`, as in `parse`."""
    data = _parsed(text, what)
    if not isinstance(data, list):
        raise DataError(f"not {what}: expected a JSON array{single if isinstance(data, dict) else ''}.")
    for place, one in enumerate(data):
        if not isinstance(one, dict):
            raise DataError(f"not {what}: [{place}] is {one!r:.40}; it must be an object.")
    return data


def _parsed(text: str, what: str) -> Any:
    try:
        return json_value(text)
    except (ValueError, TypeError) as error:
        raise DataError(f"not {what}: not JSON ({error}).") from None


def dump(value: object, indent: int | None = None) -> str:
    """JSON text in which only what UTF-8 cannot hold is escaped: halves of characters, which a text may contain."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _within(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and _finite(value) and least <= value <= most


def _finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        # A whole number that no float holds.
        return False


def _is_plain(value: object, depth: int) -> bool:
    if isinstance(value, Mapping | list | tuple):
        inner = value.values() if isinstance(value, Mapping) else value
        return depth > 0 and all(_is_plain(item, depth - 1) for item in inner)
    return not isinstance(value, int | float) or _finite(value)


def plain_values(value: Any) -> Any:
    """As plain JSON values: names are strings, tuples lists, and numbers that are not finite None."""
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
