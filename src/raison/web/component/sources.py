"""The component as text: one ES module and one style sheet, the same for a notebook, a page and a standalone file.

A notebook takes one module as text and cannot follow an import. The component is therefore read as one text: its files,
each after those that it imports, without these lines. Standalone pages need no model, and contain only the files that
they need (`scripts` in report/style/markup.py).
"""

from functools import cache
from importlib.resources import files

from raison.report.style.markup import asset, assets
from raison.report.style.modules import joined

STYLES = ("explanation.css", "generation.css", "citations.css", "fragment.css")
"""Style sheets of the report: the component looks like every other page."""
_OWN = files("raison.web.component").joinpath("assets")


@cache
def module() -> str:
    """The component as one ES module without imports.

    Its default export has `render({model, el})`, and `renderRows({ask, el})` for the runs of a server.
    """
    return joined(["component.js"], read)


@cache
def style() -> str:
    """The component's style sheet."""
    return "\n".join([assets(STYLES), read("component.css"), read("rows.css")])


def read(name: str) -> str:
    """A file of the component, or one of the report whose script is shared."""
    file = _OWN.joinpath(name)
    return file.read_text("utf-8") if file.is_file() else asset(name)
