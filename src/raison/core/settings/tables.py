"""Reads tables of a file into records by their fields, and reports every mistake at once, one per line.

A field that is a record, a list of records or a mapping to records is a table, a list of tables [[...]] or a table of
tables. `Annotated[..., Setting(...)]` says what the other fields may hold (raison.core.settings.fields), `TableReading`
how a table is read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from raison.core.errors import MISTAKE, DataError, RaisonError, UnknownNameError
from raison.core.settings.fields import REQUIRED, Field, fields_of

T = TypeVar("T")

FILE = "the study"
"""The location of keys at the top of a study file; tables are located by their headers."""
_TABLES = "a list of tables, each under its own [[...]]"


@dataclass(frozen=True, slots=True)
class TableReading:
    """How a field's table is read.

    The entries of a `flat` record are in the table around it. A mapping that takes the `rest` has every entry that no
    other field has; one that takes the `whole` has every entry. A field that is the table's `key` has the table's name
    among several. `without` maps the fields that must not be given to the message about each.
    """

    flat: bool = False
    rest: bool = False
    whole: bool = False
    key: bool = False
    without: Mapping[str, str] = field(default_factory=dict)


FLAT, REST, WHOLE, KEY = (
    TableReading(flat=True),
    TableReading(rest=True),
    TableReading(whole=True),
    TableReading(key=True),
)


def read(
    record: type[T],
    table: object,
    where: str = FILE,
    *,
    without: Mapping[str, str] | None = None,
    beside: Iterable[str] = (),
) -> tuple[T, list[str]]:
    """The record that a table at the place `where` holds, and every mistake in it.

    With mistakes the record has what could be read, and defaults or empty values elsewhere: enough to look up names.
    `without` is as in `TableReading`; `beside` has further names that a misspelt one may have meant.
    """
    reader = _TableReader([], tuple(beside))
    made = reader.record(record, table, where, TableReading(without=without or {}))
    return made, reader.mistakes


def read_written(record: type[T], written: object, what: str, path: Path) -> T:
    """The record in a JSON object that raison wrote into a file: `what` it is, such as "the head of a run".

    Entries that this version does not know are left out, and texts may be empty. Raises DataError with the first
    mistake, in one line.
    """
    reader = _TableReader([], (), written=True)
    made = reader.record(record, written, what, TableReading())
    if reader.mistakes:
        more = f" ({len(reader.mistakes) - 1} further mistakes.)" if len(reader.mistakes) > 1 else ""
        raise DataError(f"cannot read {path}: {reader.mistakes[0]}{more}")
    return made


def inside(where: str, name: str, number: int | None = None) -> str:
    """The location of a table in another one, or of one in a list of tables."""
    if where == FILE:
        return f"[{name}]" if number is None else f"[[{name}]] number {number}"
    inner = f"{where[:-1]}.{name}]" if where.endswith("]") else f"{where}, {name}"
    return inner if number is None else f"{inner} number {number}"


@dataclass(frozen=True, slots=True)
class _TableReader:
    mistakes: list[str]
    beside: tuple[str, ...]
    written: bool = False

    def record(self, kind: Any, table: object, where: str, how: TableReading, key: str = "") -> Any:
        """A record of a whole table."""
        if not isinstance(table, Mapping):
            self.mistakes.append(f"{where}: it is {table!r:.80}; give a table.")
            return _emptied(kind, {})
        known = set(_keys(kind)) - how.without.keys()
        for name in table:
            if name in how.without:
                self.mistakes.append(f"{where}: {how.without[name]}")
            elif name not in known and not self.written and not _takes_rest(kind):
                self.mistakes.append(f"{where}: {UnknownNameError('key', name, {*known, *self.beside})}")
        return self.fields(kind, {name: table[name] for name in table if name not in how.without}, where, key)

    def fields(self, kind: Any, table: Mapping[str, object], where: str, key: str = "") -> Any:
        """The record with what a table has of its fields."""
        values: dict[str, object] = {}
        before = len(self.mistakes)
        for name, one in fields_of(kind).items():
            how = _how(kind, name)
            if how.key:
                values[name] = key
            elif how.rest:
                values[name] = {other: value for other, value in table.items() if other not in _keys(kind)}
            elif how.whole:
                values[name] = table
            elif how.flat:
                values[name] = self.fields(one.hint, table, where)
            elif name in table:
                self.entry(one, how, table[name], where, values)
            elif one.default is REQUIRED:
                self.mistakes.append(f"{where}: {name} is missing; give {_words(one)}.")
        if len(self.mistakes) == before:
            try:
                return kind(**values)
            except RaisonError as error:
                self.mistakes.extend(f"{where}: {line}" for line in str(error).split(MISTAKE))
        return _emptied(kind, values)

    def entry(self, one: Field, how: TableReading, value: object, where: str, values: dict[str, object]) -> None:
        """Read the value of a field that is present, and add it to the record's values."""
        name, inner = one.name, _record_in(one.hint)
        blank = not self.written and (value is None or (isinstance(value, str) and not value.strip()))
        if (inner is None or value is None) and not blank and one.fits(value):
            values[name] = _frozen(value)
        elif inner is not None and get_origin(one.hint) is tuple and isinstance(value, list):
            places = [inside(where, name, number) for number in range(1, len(value) + 1)]
            values[name] = tuple(self.record(inner, *item, how) for item in zip(value, places, strict=True))
        elif inner is not None and _is_mapping(one.hint) and isinstance(value, Mapping):
            place = inside(where, name)
            values[name] = {key: self.record(inner, item, inside(place, key), how, key) for key, item in value.items()}
        elif inner is not None and is_dataclass(one.hint) and isinstance(value, Mapping):
            values[name] = self.record(inner, value, inside(where, name), how)
        elif one.choices and isinstance(value, str):
            self.mistakes.append(f"{where}: {UnknownNameError(name, value, one.choices)}")
        else:
            self.mistakes.append(f"{where}: {name} is {value!r:.80}; give {_words(one)}.")


@cache
def _keys(kind: type) -> tuple[str, ...]:
    """The entries that a record's table may have."""
    keys: list[str] = []
    for name, one in fields_of(kind).items():
        how = _how(kind, name)
        keys += _keys(one.hint) if how.flat else [] if how.rest or how.whole or how.key else [name]
    return tuple(keys)


@cache
def _how(kind: type, name: str) -> TableReading:
    hint = get_type_hints(kind, include_extras=True)[name]
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, TableReading)), TableReading())


def _takes_rest(kind: type) -> bool:
    return any(_how(kind, name).rest for name in fields_of(kind))


def _record_in(hint: Any) -> Any:
    """The record that a field's table, or each of its tables, is read into; None for any other field."""
    inner = get_args(hint)[0] if get_origin(hint) is tuple else get_args(hint)[1] if _is_mapping(hint) else hint
    return inner if is_dataclass(inner) else None


def _is_mapping(hint: Any) -> bool:
    return get_origin(hint) is Mapping


def _words(one: Field) -> str:
    inner = _record_in(one.hint)
    return one.words if inner is None else _TABLES if get_origin(one.hint) is tuple else "a table"


def _frozen(value: object) -> object:
    """Lists as tuples; what tables hold stays as it is."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _emptied(kind: Any, values: Mapping[str, object]) -> Any:
    """A record that does not check itself, with these values, and defaults or empty ones for the others."""
    made = object.__new__(kind)
    for name, one in fields_of(kind).items():
        value = values.get(name, _empty(one.hint) if one.default is REQUIRED else one.default)
        object.__setattr__(made, name, value)
    return made


def _empty(hint: Any) -> object:
    if is_dataclass(hint):
        return _emptied(hint, {})
    origin = get_origin(hint) or hint
    return {} if origin is Mapping else origin() if origin in (str, int, float, bool, tuple) else ""
