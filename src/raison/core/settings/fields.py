"""Fields of settings records: their allowed values, defined once for calls, study files and the command line."""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from raison.core.errors import MISTAKE, InputError, UnknownNameError

REQUIRED = dataclasses.MISSING
_HIGHEST = sys.float_info.max
"""Beyond it are infinities and integers too large for a float; comparisons with it also fail for NaN."""
LISTS = {"a text in quotes": "a list of texts in quotes", "a whole number": "a list of whole numbers"}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field is for, as in `Annotated[int, Setting("Texts to learn from.", least=1)]`.

    `help` is its line on a help page; fields without one are no options there. Numbers are at least `least` and above
    `above`, at most `most`; a list may be `distinct`. `words` say what a value may be where the field's type does not.

    For the command line: `options` are the option's names, if they differ from the field's. `flag` is the value that an
    option without an argument sets. `none` is the number that means None. `read` converts the typed string, if the
    field's type does not say how.
    """

    help: str = ""
    least: int | float | None = None
    above: int | float | None = None
    most: int | float | None = None
    words: str = ""
    distinct: bool = False
    options: tuple[str, ...] = ()
    flag: str | bool | None = None
    none: int | None = None
    read: Callable[[str], object] | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record. `hint` is its type without None and Annotated; `default` is REQUIRED if it has none.

    A field that is not annotated with a Setting has an empty one.
    """

    name: str
    hint: Any
    optional: bool
    default: Any
    setting: Setting

    def fits(self, value: object) -> bool:
        """Whether the field may hold the value, which may be a list in place of a tuple."""
        return (value is None and self.optional) or (
            _fits(self.hint, value) and self._in_range(value) and self._is_distinct(value)
        )

    @property
    def choices(self) -> tuple[str, ...]:
        """The names among which a value is one; () for all other fields."""
        return get_args(self.hint) if get_origin(self.hint) is Literal else ()

    @property
    def words(self) -> str:
        """What the field may hold, to follow "give"."""
        return self.setting.words or _words(self.hint) + _range_words(self.setting)

    def mistake(self, value: object) -> InputError:
        """The error message for a value that does not fit."""
        if self.choices and isinstance(value, str):
            return UnknownNameError(self.name.replace("_", " "), value, self.choices)
        return InputError(f"{self.name} cannot be {value!r:.80}: give {self.words}.")

    def _is_distinct(self, value: Any) -> bool:
        if not self.setting.distinct:
            return True
        return bool(value) and len(set(value)) == len(value)

    def _in_range(self, value: Any) -> bool:
        setting = self.setting
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        low = setting.least is None or value >= setting.least
        high = setting.most is None or value <= setting.most
        return low and high and (setting.above is None or value > setting.above)


@cache
def fields_of(record: type) -> dict[str, Field]:
    """The fields of a dataclass by their names."""
    hints = get_type_hints(record, include_extras=True)
    return {field.name: _field(field, hints[field.name]) for field in dataclasses.fields(record) if field.init}


def mistakes_in(record: type, values: Mapping[str, object]) -> list[InputError]:
    """The errors in values of a record's fields, field by field."""
    known = fields_of(record)
    return [known[name].mistake(value) for name, value in values.items() if not known[name].fits(value)]


def check(record: object) -> None:
    """Raises InputError that names every field with an invalid value."""
    kind: type = type(record)
    refuse(mistakes_in(kind, {name: getattr(record, name) for name in fields_of(kind)}))


def refuse(mistakes: Sequence[InputError]) -> None:
    """Raises these as one error, one line each, if there are any."""
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        raise InputError(MISTAKE.join(map(str, mistakes)))


def _field(field: "dataclasses.Field[Any]", hint: Any) -> Field:
    setting = Setting()
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        setting = next((extra for extra in extras if isinstance(extra, Setting)), setting)
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    others = tuple(part for part in parts if part is not NoneType)
    default = field.default if field.default_factory is REQUIRED else field.default_factory()
    return Field(field.name, Union[others], len(others) < len(parts), default, setting)  # noqa: UP007


def _fits(hint: Any, value: Any) -> bool:
    """Whether a value is of a type; types that neither TOML nor a command line has are the record's own to check."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(part, value) for part in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin is tuple:
        first, *others = get_args(hint)
        hints = [first] * len(value) if others == [...] and isinstance(value, list | tuple) else [first, *others]
        return isinstance(value, list | tuple) and len(value) == len(hints) and all(map(_fits, hints, value))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and -_HIGHEST <= value <= _HIGHEST
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is Mapping:
        inner = get_args(hint)[1]
        return isinstance(value, Mapping) and all(isinstance(key, str) and _fits(inner, value[key]) for key in value)
    return isinstance(value, hint) if hint in (bool, str) else True


def _words(hint: Any) -> str:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return " or ".join(_words(part) for part in get_args(hint))
    if origin is Literal:
        return " or ".join(f'"{choice}"' if isinstance(choice, str) else str(choice) for choice in get_args(hint))
    if origin is tuple:
        entry = _words(get_args(hint)[0])
        return LISTS.get(entry, f"a list, each entry {entry}")
    if origin is Mapping:
        return "a table"
    known = {int: "a whole number", float: "a number", bool: "true or false", str: "a text in quotes"}
    return known.get(hint, "another")


def _range_words(setting: Setting) -> str:
    if setting.above is not None:
        return f" above {setting.above:g}" + ("" if setting.most is None else f", at most {setting.most:g}")
    if setting.least is None:
        return "" if setting.most is None else f" of at most {setting.most:g}"
    return f" of at least {setting.least:g}" if setting.most is None else f" from {setting.least:g} to {setting.most:g}"
