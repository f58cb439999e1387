"""Methods and metrics by name. A name is a file's name: adding a file adds a method."""

import ast
import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from raison.core.errors import InputError, RaisonError, UnknownNameError, first_line
from raison.core.nicknames import NICKNAMES
from raison.core.settings.declared import refuse_faulty, refuse_lost_settings, refuse_unfinished, undecorated, unstated

T = TypeVar("T")


class Catalogue(Generic[T]):
    """The classes of one folder, found by their files' names and imported only when requested.

    Each is derived from one of `bases`. `fault` says what is wrong with the class of an instance, in words that name
    it, or "" if nothing is.
    """

    def __init__(self, package: str, kind: str, *bases: type[Any], fault: Callable[[Any], str] | None = None) -> None:
        self._package = package
        self._kind = kind
        self._bases = bases
        self._fault = fault
        self.names: tuple[str, ...] = _module_names(package)

    def get(self, name: str) -> type[T]:
        """The class of a name; UnknownNameError with the nearest name otherwise, InputError for a file that cannot be
        used."""
        if name not in self.names:
            raise UnknownNameError(self._kind, name, self.names, NICKNAMES)
        module = f"{self._package}.{name}"
        component: type[T] | None = vars(_of_frozen(module)).get(class_name(name))
        if component is None:
            raise InputError(no_class(self._package, name))
        if not (isinstance(component, type) and issubclass(component, self._bases)):
            bases = " or ".join(base.__name__ for base in self._bases)
            raise InputError(f"{path_of(module)}: {class_name(name)} has to be a class that is derived from {bases}.")
        refuse_lost_settings(component)
        refuse_unfinished(component, path_of(module))
        if self._fault is not None:
            refuse_faulty(component, self._fault, path_of(module))
        return component

    def usable(self) -> Iterator[type[T]]:
        """The classes of all files that can be used: one that is being written stops no other."""
        for name in self.names:
            with suppress(RaisonError):
                yield self.get(name)

    def classes(self) -> dict[str, str]:
        """Class name -> name, for every file of the folder."""
        return {class_name(name): name for name in self.names}

    def create(self, spec: "str | type[T] | T") -> T:
        """An instance from a name, a call such as "kernel_shap(samples=512)", a class or an instance.

        Raises InputError or UnknownNameError for anything else.
        """
        if spec is None:
            usual = "auto" if "auto" in self.names else self.names[0]
            raise InputError(f"no {self._kind} is given: name one, such as '{usual}'.")
        if not isinstance(spec, str):
            return self._made(spec)
        name, settings = _parse(spec, self._kind)
        cls = self.get(name)
        known = [f.name for f in fields(cls) if f.init]  # type: ignore[arg-type]
        for setting in settings:
            if setting not in known:
                raise UnknownNameError(f"setting of {name}", setting, known)
        try:
            created = cls(**settings)
            # Plans and caches have them as keys.
            hash(created)
        except TypeError as error:
            raise InputError(f"these settings of {name} are invalid: {settings} ({error}).") from None
        return created

    def _made(self, spec: type[T] | T) -> T:
        cls = spec if isinstance(spec, type) else type(spec)
        if not issubclass(cls, self._bases):
            raise InputError(
                f"the {self._kind} is {spec!r:.60}, of type {type(spec).__name__}: give a name, a call such as "
                f"'name(samples=512)', a {self._kind}'s class or an instance of it."
            )
        # A reference is for the lists of the package.
        if missing := [constant for constant in unstated(cls) if constant != "reference"]:
            raise InputError(
                f"the {self._kind} {cls.__name__} does not state {' and '.join(missing)}: set it in the class."
            )
        try:
            created = spec() if isinstance(spec, type) else spec
        except TypeError as error:
            raise InputError(f"the {self._kind} {cls.__name__} cannot be made without settings ({error}).") from None
        try:
            hash(created)
        except TypeError as error:
            raise InputError(
                f"the {self._kind} {cls.__name__} cannot be compared with others ({error}): it has to be a frozen "
                "dataclass whose settings do not change, such as tuples in place of lists."
            ) from None
        if self._fault is not None and (fault := self._fault(created)):
            raise InputError(f"the {self._kind} cannot be used: {fault}.")
        return created


def class_name(name: str) -> str:
    """kernel_shap -> KernelShap."""
    return "".join(part.capitalize() for part in name.split("_"))


def no_class(package: str, name: str) -> str:
    """The error for a file without the class that it is named after."""
    path = path_of(f"{package}.{name}")
    return f"{path} has no class {class_name(name)}: a file {name}.py contains the class of this name."


def no_python(error: SyntaxError, path: str | None = None) -> InputError:
    """The error for a file that Python cannot read; `path` if the error may lack it."""
    file = "/".join(Path(error.filename or path or "").parts[-3:])
    where = file if error.lineno is None else f"{file}, line {error.lineno},"
    return InputError(f"{where} is not valid Python: {error.msg}.")


def name_of(instance: object) -> str:
    """The name of a method's or metric's instance or class: its module's last part.

    A class of the caller's own is called "module.Class", which is the name of no file here.
    """
    cls = instance if isinstance(instance, type) else type(instance)
    own = "" if cls.__module__.startswith("raison.") else f".{cls.__name__}"
    return cls.__module__.rpartition(".")[2] + own


def label_of(instance: object) -> str:
    """The name, with the settings that differ from their defaults: "kernel_shap(samples=512)"."""
    changed = [
        f"{f.name}={getattr(instance, f.name)!r}"
        for f in fields(instance)  # type: ignore[arg-type]
        if getattr(instance, f.name) != f.default
    ]
    return name_of(instance) + (f"({', '.join(changed)})" if changed else "")


def refuse_repeated(what: str, labels: Iterable[str]) -> None:
    """Raise InputError for a label that occurs twice."""
    for label, count in Counter(labels).items():
        if count > 1:
            raise InputError(f"{what} {label} is named twice: remove one.")


def summary_of(doc: str) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(doc.split("\n\n")[0].split())


@cache
def _module_names(package: str) -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__)))


def imported(module: str) -> ModuleType:
    """A file that is found by its name. Raises InputError, which names the file, if it cannot be imported."""
    try:
        return importlib.import_module(module)
    except RaisonError:
        raise
    except SyntaxError as error:
        raise no_python(error, path_of(module)) from None
    except Exception as error:
        raise InputError(
            f"{path_of(module)} cannot be imported ({type(error).__name__}: {first_line(error)}): correct it, or move "
            "it out of the folder."
        ) from error


def path_of(module: str) -> str:
    """A module's file, as messages name it."""
    return f"{module.replace('.', '/')}.py"


def _of_frozen(module: str) -> ModuleType:
    """A file of a catalogue, with a line for a class that does not derive from the frozen one as it should."""
    try:
        return imported(module)
    except InputError as error:
        if not isinstance(error.__cause__, TypeError) or "non-frozen dataclass" not in str(error.__cause__):
            raise
        name = class_name(module.rpartition(".")[2])
        raise undecorated(name, "settings do not change, but its @dataclass lets them") from None


def _parse(spec: str, kind: str) -> tuple[str, dict[str, Any]]:
    if "(" not in spec:
        return spec.strip(), {}
    advice = f"cannot read the {kind} '{spec}': write it as a call with keyword settings, such as name(samples=512)."
    try:
        call = ast.parse(spec.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Also for lone surrogates and for brackets that nest too deeply.
        raise InputError(advice) from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise InputError(advice)
    try:
        return call.func.id, {str(k.arg): _unchanging(ast.literal_eval(k.value)) for k in call.keywords}
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise InputError(advice) from None


def _unchanging(value: Any) -> Any:
    """Lists as tuples: settings are compared, and do not change."""
    return tuple(map(_unchanging, value)) if isinstance(value, list | tuple) else value
