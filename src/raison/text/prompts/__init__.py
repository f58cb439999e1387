"""Prompts as data: the included ones are TOML files in this folder, found by their names."""

from pathlib import Path

from raison.core.errors import UnknownNameError
from raison.text.prompts.prompt import Prompt
from raison.text.prompts.render import Rendered, Template

__all__ = ["Prompt", "Rendered", "Template", "find", "named", "names"]

_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """The included prompts."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def named(name: str) -> Prompt:
    """An included prompt. Raises UnknownNameError."""
    if name not in names():
        raise UnknownNameError("prompt", name, names())
    return Prompt.read(_FOLDER / f"{name}.toml")


def find(spec: Prompt | str | Path) -> Prompt:
    """A prompt as it is, an included one by its name, or one from a TOML file.

    Raises UnknownNameError; DataError for a file that is missing or not TOML; PromptError for one with mistakes.
    """
    if isinstance(spec, Prompt):
        return spec
    if isinstance(spec, str) and not spec.endswith(".toml"):
        return named(spec)
    return Prompt.read(spec)
