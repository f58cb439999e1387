"""Fields of settings records: their allowed values, defined once for calls, study files and the command line."""

import dataclasses
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from raison.core.errors import MISTAKE, InputError, UnknownNameError

REQUIRED = dataclasses.MISSING
_HIGHEST = sys.float_info.max
"""Beyond it are infinities and integers too large for a float; comparisons with it also fail for NaN."""
_LARGEST = 2**63 - 1
"""The largest whole number: what 64 bits hold."""
LISTS = {"a text in quotes": "a list of texts in quotes", "a whole number": "a list of whole numbers"}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field is for, as in `Annotated[int, Setting("Texts to learn from.", least=1)]`.

    `help` is its line on a help page; fields without one are no options there. Numbers, also those of a list, are at
    least `least` or above `above`, and at most `most` or below `below`. A list has `fewest` entries or more, and may be
    `distinct`. `words` say what a value may be where type and range do not; they follow "give". A value is checked
    `elsewhere` if what it may be depends on a model.

    A field that is `outside` names a file or a model, which a request to a server cannot choose.

    For the command line: `options` are the option's names, if they differ from the field's. `flag` is the value that an
    option without an argument sets. `none` is the number that means None. `read` converts the typed string, if the
    field's type does not say how.
    """

    help: str = ""
    least: int | float | None = None
    above: int | float | None = None
    most: int | float | None = None
    below: int | float | None = None
    fewest: int = 0
    words: str = ""
    distinct: bool = False
    elsewhere: bool = False
    outside: bool = False
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
        return (
            self.setting.elsewhere
            or (value is None and self.optional)
            or (_fits(self.hint, value) and self._in_range(value) and self._is_long_enough(value))
        )

    @property
    def choices(self) -> tuple[str, ...]:
        """The names among which a value is one; () for all other fields."""
        return get_args(self.hint) if get_origin(self.hint) is Literal else ()

    @property
    def words(self) -> str:
        """What the field may hold, to follow "give"."""
        return self.setting.words or _words(self.hint) + _range_words(self.setting)

    def mistake(self, value: object, owner: str = "") -> InputError:
        """The error message for a value that does not fit; `owner` names whose setting it is."""
        whose = f" of {owner}" if owner else ""
        names = _names(self.hint)
        entries = value if isinstance(value, list | tuple) else [value]
        for entry in entries:
            if isinstance(entry, int) and abs(entry) > _LARGEST:
                return InputError(f"{self.name}{whose} cannot be a number beyond {_LARGEST:,}: give {self.words}.")
            if names and isinstance(entry, str) and entry not in names:
                return UnknownNameError(self.name.replace("_", " ") + whose, entry, names)
        return InputError(f"{self.name}{whose} cannot be {value!r:.80}: give {self.words}.")

    def _is_long_enough(self, value: Any) -> bool:
        """Whether a list has as many entries as it should, and none twice if they are distinct."""
        if isinstance(value, list | tuple) and len(value) < self.setting.fewest:
            return False
        if not self.setting.distinct:
            return True
        return bool(value) and len(set(value)) == len(value)

    def _in_range(self, value: Any) -> bool:
        if isinstance(value, list | tuple):
            return all(map(self._in_range, value))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        setting = self.setting
        low = (setting.least is None or value >= setting.least) and (setting.above is None or value > setting.above)
        high = (setting.most is None or value <= setting.most) and (setting.below is None or value < setting.below)
        return low and high


@cache
def fields_of(record: type) -> dict[str, Field]:
    """The fields of a dataclass by their names."""
    hints = _hints(record)
    return {field.name: _field(field, hints[field.name]) for field in dataclasses.fields(record) if field.init}


def mistakes_in(record: type, values: Mapping[str, object], owner: str = "") -> list[InputError]:
    """The errors in values of a record's fields, field by field."""
    known = fields_of(record)
    return [known[name].mistake(value, owner) for name, value in values.items() if not known[name].fits(value)]


def check(record: object, owner: str = "") -> None:
    """Raises InputError that names every field with an invalid value, and the owner if it has one."""
    kind: type = type(record)
    refuse(mistakes_in(kind, {name: getattr(record, name) for name in fields_of(kind)}, owner))


def refuse(mistakes: Sequence[InputError]) -> None:
    """Raises these as one error, one line each, if there are any."""
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        raise InputError(MISTAKE.join(map(str, mistakes)))


def _hints(record: type) -> Mapping[str, Any]:
    """The types of a class's fields; Any for a class of the caller's own that names what only type checkers import."""
    try:
        return get_type_hints(record, include_extras=True)
    except NameError:
        return defaultdict(lambda: Any)


def _field(field: "dataclasses.Field[Any]", hint: Any) -> Field:
    hint, setting = _unwrapped(hint, Setting())
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    others = tuple(part for part in parts if part is not NoneType)
    default = field.default if field.default_factory is REQUIRED else field.default_factory()
    # Annotated may also stand inside the union with None.
    hint, setting = _unwrapped(Union[others], setting)  # noqa: UP007
    return Field(field.name, hint, len(others) < len(parts), default, setting)


def _unwrapped(hint: Any, setting: Setting) -> tuple[Any, Setting]:
    """A type without Annotated, and the Setting in it if there is one."""
    if get_origin(hint) is not Annotated:
        return hint, setting
    hint, *extras = get_args(hint)
    return hint, next((extra for extra in extras if isinstance(extra, Setting)), setting)


def _fits(hint: Any, value: Any) -> bool:
    """Whether a value is of a type; types that neither TOML nor a command line has are the record's own to check."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(part, value) for part in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin in (tuple, list):
        first, *others = get_args(hint)
        any_length = origin is list or others == [...]
        hints = [first] * len(value) if any_length and isinstance(value, list | tuple) else [first, *others]
        return isinstance(value, list | tuple) and len(value) == len(hints) and all(map(_fits, hints, value))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and -_HIGHEST <= value <= _HIGHEST
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
    if origin is Mapping:
        inner = get_args(hint)[1]
        return isinstance(value, Mapping) and all(isinstance(key, str) and _fits(inner, value[key]) for key in value)
    return isinstance(value, hint) if hint in (bool, str) else True


def _names(hint: Any) -> tuple[str, ...]:
    """The names that a type consists of, alone or in a list; () for a type that has other values."""
    origin = get_origin(hint)
    if origin is Literal:
        return get_args(hint)
    if origin in (tuple, list):
        return _names(get_args(hint)[0])
    parts = [_names(part) for part in get_args(hint)] if origin in (Union, UnionType) else []
    return tuple(dict.fromkeys(chain.from_iterable(parts))) if all(parts) else ()


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
    if setting.least is not None and setting.most is not None:
        return f" from {setting.least:g} to {setting.most:g}"
    bounds = {"of at least": setting.least, "above": setting.above, "at most": setting.most, "below": setting.below}
    written = ", ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)
    if written.startswith("at most"):
        return f" of {written}"
    return f" {written}" if written else ""
