"""Scripts as files that import each other, joined into one text, because standalone pages and notebooks cannot follow
imports."""

import re
from collections.abc import Callable, Iterable

_IMPORT = re.compile(r"^import \{[^}]*\} from \"[./\w]*?(\w+\.js)\";\n", re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?function |const |class )", re.M)


def imports(text: str) -> tuple[str, ...]:
    """The names of the files that a script imports."""
    return tuple(_IMPORT.findall(text))


def alone(text: str) -> str:
    """A script without its import and export lines."""
    return _EXPORT.sub("", _IMPORT.sub("", text))


def joined(names: Iterable[str], read: Callable[[str], str]) -> str:
    """The files and all their imports, each once and after its own imports, without these lines."""
    scripts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in scripts:
            return
        text = read(name)
        for one in imports(text):
            add(one)
        scripts[name] = alone(text)

    for name in names:
        add(name)
    return "".join(scripts.values())
