"""The component as text: one ES module and one style sheet, the same for a notebook, a page and a standalone file.

A notebook takes one module as text, and so does a standalone file, so neither can follow an import. The component is
therefore read as one text: its files in the order below, without the lines by which they import each other.
"""

import re
from functools import cache
from importlib.resources import files

from raison.report.style.markup import assets

SHARED = ("output.js", "cited.js")
"""Of the report: what follows the pointer on its pages follows it here. They export nothing."""
MODULES = (
    "elements.js",
    "texts.js",
    "talk.js",
    "past.js",
    "map.js",
    "words.js",
    "form.js",
    "taking.js",
    "face.js",
    "messages.js",
    "written.js",
    "writing.js",
    "statements.js",
    "citing.js",
    "tables.js",
    "trust.js",
    "rowsfilter.js",
    "rowswords.js",
    "rows.js",
    "component.js",
)
"""Each imports only from those before it; the last one exports `render`."""
STYLES = ("explanation.css", "generation.css", "citations.css", "fragment.css")
"""Of the report: the component has the look of every other page."""
_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./(\w+\.js)\";\n", re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?function |const |class )", re.M)


@cache
def module() -> str:
    """The component as one ES module without imports.

    Its default export has `render({model, el})`, and `renderRows({ask, el})` for the runs of a server.
    """
    own = (_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in MODULES)
    return "\n".join([assets(SHARED), *own])


def imports(name: str) -> tuple[str, ...]:
    """The files that a file of the component imports."""
    return tuple(_IMPORT.findall(_read(name)))


@cache
def style() -> str:
    """The component's style sheet."""
    return "\n".join([assets(STYLES), _read("component.css"), _read("rows.css")])


def _read(name: str) -> str:
    return files("raison.web.component").joinpath("assets", name).read_text("utf-8")
