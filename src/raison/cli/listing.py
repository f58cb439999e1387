"""The classes in a catalogue's folder, read from the source, so that a list need not import torch."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from raison.core.errors import InputError, UnknownNameError
from raison.core.registry import class_name, imported, no_python

PACKAGE = Path(__file__).parents[1]
FACTS = ("reference", "needs", "outputs", "properties", "passes", "higher_is_better")
"""Class attributes to list; a kind may lack some."""
STATED = {"methods": ("reference", "passes"), "metrics": ("reference", "higher_is_better")}
"""Those without a default."""
SETS = ("needs", "outputs", "properties")
CONTRACTS = "core"
"""The folder of the classes from which all are derived."""


class _NotStatedError(Exception):
    """A computed value, which cannot be read from the source."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A class of a catalogue: its name, docstring, settings with defaults, attributes and functions."""

    name: str
    doc: str
    settings: Mapping[str, object]
    facts: Mapping[str, Any]
    functions: frozenset[str]
    """The names that the class and its bases define, without those of the contracts in raison.core."""


@cache
def names(kind: str) -> tuple[str, ...]:
    """The names of a kind, "methods" or "metrics": those of its folder's files."""
    return tuple(sorted(path.stem for path in (PACKAGE / kind).glob("*.py") if path.stem != "__init__"))


@cache
def entry(kind: str, name: str) -> CatalogueEntry:
    """The class of a name, read from its file; imported if its settings are computed.

    Raises UnknownNameError; InputError for a file that is not valid Python or lacks its class, or a class without what
    every one states.
    """
    if name not in names(kind):
        raise UnknownNameError(kind.removesuffix("s"), name, names(kind))
    found = _entry(kind, name)
    if lacking := [fact for fact in STATED[kind] if fact not in found.facts]:
        raise InputError(f"raison/{kind}/{name}.py: {class_name(name)} does not state {' and '.join(lacking)}.")
    for fact in SETS:
        if not isinstance(value := found.facts.get(fact, frozenset()), set | frozenset):
            raise InputError(f"raison/{kind}/{name}.py: {class_name(name)}.{fact} is {value!r:.60}: give a frozenset.")
    return found


def _entry(kind: str, name: str) -> CatalogueEntry:
    try:
        return _read(kind, name)
    except _NotStatedError:
        cls = vars(imported(f"raison.{kind}"))["CATALOGUE"].get(name)
        stated = {fact: getattr(cls, fact) for fact in FACTS if fact in dir(cls)}
        if kind == "methods":
            stated["needs"] = frozenset(needed.name for needed in stated["needs"])
        own = [part for part in cls.__mro__ if not part.__module__.startswith(f"raison.{CONTRACTS}.")]
        defined = frozenset(
            name for part in own for name, value in vars(part).items() if isinstance(value, property) or callable(value)
        )
        return CatalogueEntry(
            name, cls.__doc__ or "", {field.name: field.default for field in fields(cls)}, stated, defined
        )


def _read(kind: str, name: str) -> CatalogueEntry:
    path = PACKAGE / kind / f"{name}.py"
    written = _class(path, class_name(name))
    stated = _stated(path, written)
    return CatalogueEntry(
        name, ast.get_docstring(written) or "", stated.settings, stated.facts, frozenset(stated.functions)
    )


@dataclass(frozen=True, slots=True)
class _Stated:
    """What a class and its bases state."""

    settings: dict[str, object] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)


def _stated(path: Path, written: ast.ClassDef) -> _Stated:
    """The settings and the attributes of a class that have a value, its bases' first, and its functions."""
    stated = _Stated()
    for base in map(ast.unparse, written.bases):
        origin = _origin(path, base)
        if origin.is_file():
            inherited = _stated(origin, _class(origin, base))
            stated.settings.update(inherited.settings)
            stated.facts.update(inherited.facts)
            stated.functions.update(inherited.functions)
    if path.parent != PACKAGE / CONTRACTS:
        stated.functions.update(node.name for node in written.body if isinstance(node, ast.FunctionDef))
    for node in written.body:
        match node:
            case ast.AnnAssign(target=ast.Name(name), annotation=annotation, value=value):
                if not ast.unparse(annotation).startswith("ClassVar"):
                    stated.settings[name] = _value(path, value)
                elif name in FACTS and value is not None:
                    stated.facts[name] = _value(path, value)
            case ast.Assign(targets=[ast.Name(name)], value=value) if name in FACTS:
                stated.facts[name] = _value(path, value)
    return stated


def _value(path: Path, node: ast.expr | None) -> Any:
    """A literal, a named constant, a text of these, a capability's name, or a frozenset of these or of an enumeration's
    values."""
    match node:
        case ast.Constant(value):
            return value
        case ast.JoinedStr(parts):
            return "".join(str(_value(path, part)) for part in parts)
        case ast.FormattedValue(inner):
            return _value(path, inner)
        case ast.Tuple(elements):
            return tuple(_value(path, element) for element in elements)
        case ast.Set(elements):
            return {_value(path, element) for element in elements}
        case ast.Call(func=ast.Name("frozenset"), args=arguments):
            return frozenset(_value(path, arguments[0])) if arguments else frozenset()
        case ast.Attribute(value=ast.Name(owner), attr=member):
            origin = _origin(path, owner)
            return _value(origin, _assigned(_class(origin, owner).body, member))
        case ast.Name(constant):
            origin = _origin(path, constant)
            tree = _tree(origin).body
            if any(isinstance(node, ast.ClassDef) and node.name == constant for node in tree):
                return _value(origin, _assigned(_class(origin, constant).body, "name"))
            return _value(origin, _assigned(tree, constant))
    raise _NotStatedError


def _assigned(body: list[ast.stmt], name: str) -> ast.expr:
    for node in body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
            return node.value
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and node.value is not None:
            return node.value
    raise _NotStatedError


def _origin(path: Path, name: str) -> Path:
    """The file of this package that defines a name: the file itself, or the one it is imported from."""
    for node in _tree(path).body:
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            return PACKAGE.joinpath(*(node.module or "").split(".")[1:]).with_suffix(".py")
    return path


def _class(path: Path, name: str) -> ast.ClassDef:
    for node in _tree(path).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    raise _NotStatedError


@cache
def _tree(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise no_python(error, str(path)) from None
