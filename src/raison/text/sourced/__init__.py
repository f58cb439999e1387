"""Prompts with sources as data: the included ones are TOML files in this folder, found by their names."""

from os import PathLike
from pathlib import Path

from raison.core.errors import InputError, UnknownNameError
from raison.text.sourced.template import Filled, SourcePlace, SourceTemplate

__all__ = ["Filled", "SourcePlace", "SourceTemplate", "find", "names"]

_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """The included templates."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def find(spec: SourceTemplate | str | Path) -> SourceTemplate:
    """A template as it is, an included one by its name, one from a TOML file, or a string with its two slots.

    Raises UnknownNameError, DataError for a file that cannot be read, InputError for a template with mistakes.
    """
    if isinstance(spec, SourceTemplate):
        return spec
    if not isinstance(spec, str | PathLike):
        raise InputError(f"the template is {spec!r:.60}: give its name, a TOML file, or a string with its two slots.")
    if isinstance(spec, str) and "{" in spec:
        return SourceTemplate("own", spec)
    if isinstance(spec, str) and not spec.endswith(".toml"):
        if spec not in names():
            raise UnknownNameError("template", spec, names())
        return SourceTemplate.read(_FOLDER / f"{spec}.toml")
    return SourceTemplate.read(Path(spec))
