"""Whether a class of a method or metric states what it has to: its settings as fields, because Python loses others
without a word, its constants, and the arguments of its functions."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from inspect import get_annotations, signature
from typing import Any, ClassVar, get_origin

from raison.core.errors import InputError, first_line


def refuse_lost_settings(cls: type) -> None:
    """Raise InputError if a class that is derived from a dataclass, or one of its bases, states settings that are not
    fields: those of a class without the decorator, and those without a type."""
    _refuse_lost(cls)


@cache
def _refuse_lost(cls: type) -> None:
    for part in cls.__mro__:
        if any(map(is_dataclass, part.__mro__[1:])):
            # From Python 3.14 on, a type that is imported for type checkers only has no annotation to read.
            with suppress(NameError):
                _refuse_lost_of(part)


def refuse_unfinished(cls: type, path: str) -> None:
    """Raise InputError, which names the file, for a class that lacks constants or functions that every one has, or the
    default of a setting: lists make each with its defaults."""
    if lacking := _unfinished(cls):
        raise InputError(f"{path}: {lacking}.")


@cache
def _unfinished(cls: type) -> str:
    """What a class lacks; "" if it is finished."""
    name = cls.__name__
    if functions := sorted(getattr(cls, "__abstractmethods__", ())):
        return f"{name} does not define {' and '.join(functions)}"
    if missing := unstated(cls):
        return f"{name} does not state {' and '.join(missing)}"
    settings = fields(cls) if is_dataclass(cls) else ()
    required = [one.name for one in settings if one.init and one.default is one.default_factory is MISSING]
    return f"{name} has no default for {' and '.join(required)}, and every setting needs one" if required else ""


def refuse_faulty(cls: type, fault: Callable[[Any], str], path: str) -> None:
    """Raise InputError, which names the file, for a class whose instance with the default settings cannot be made, or
    has a fault."""
    if found := _faulty(cls, fault):
        raise InputError(f"{path}: {found}.")


@cache
def _faulty(cls: type, fault: Callable[[Any], str]) -> str:
    """What is wrong with a class; "" if nothing is."""
    try:
        made = cls()
    except Exception as error:  # noqa: BLE001 - the file is an author's, and any error of it is what is looked for
        return f"{cls.__name__} fails with its default settings ({type(error).__name__}: {first_line(error)})"
    return fault(made)


def untaken(function: Any, declared: Callable[..., object]) -> str:
    """The arguments of a declared method, "(problem, rngs)", if a function does not take them; "" if it does."""
    _self, *arguments = signature(declared).parameters
    try:
        signature(function).bind(*arguments)
    except TypeError:
        return f"({', '.join(arguments)})"
    return ""


def unstated(cls: type) -> tuple[str, ...]:
    """The constants that a class has to state, and does not."""
    stated = dict.fromkeys(name for part in cls.__mro__ for name in _constants(part))
    return tuple(constant for constant in stated if not hasattr(cls, constant))


def _constants(cls: type) -> Iterator[str]:
    # From Python 3.14 on, a type that is imported for type checkers only has no annotation to read.
    with suppress(NameError):
        yield from (name for name, hint in get_annotations(cls).items() if _is_constant(hint))


def undecorated(name: str, why: str) -> InputError:
    """The error for a class without the right decorator."""
    return InputError(f"write @dataclass(frozen=True) above class {name}: {why}.")


def _refuse_lost_of(cls: type) -> None:
    lost = [name for name, hint in get_annotations(cls).items() if not _is_constant(hint)]
    if lost and "__dataclass_fields__" not in vars(cls):
        raise undecorated(cls.__name__, f"without it, its settings are lost ({', '.join(lost)})")
    for name in _untyped(cls):
        value = vars(cls)[name]
        raise InputError(
            f"write a type for {name} in class {cls.__name__}, as in `{name}: {type(value).__name__} = {value!r:.40}`: "
            "without one, it is not a setting (annotate a constant as ClassVar)."
        )


def _untyped(cls: type) -> Iterator[str]:
    """The names of values that look like settings and have no type. What a base states as a constant needs none."""
    bases = cls.__mro__[1:]
    settings = {field.name for base in bases if is_dataclass(base) for field in fields(base)}
    stated = {name for base in bases for name in (*vars(base), *get_annotations(base))} - settings
    for name, value in vars(cls).items():
        is_plain = name.islower() and not name.startswith("_") and not (callable(value) or hasattr(value, "__get__"))
        if is_plain and name not in get_annotations(cls) and name not in stated:
            yield name


def _is_constant(hint: Any) -> bool:
    if isinstance(hint, str):
        return hint.partition("[")[0].endswith("ClassVar")
    return hint is ClassVar or get_origin(hint) is ClassVar
