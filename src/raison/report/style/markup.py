"""Pages made from templates, which are safe by construction, and the shell of a standalone page.

jinja2 escapes every value that a template prints unless it is Markup, and only this module makes Markup of text (tests
check both). A name that a template misspells is an error.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import partial
from html import escape
from importlib.resources import files
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from raison.core.results.printable import OVERRIDES
from raison.report.style import phrases
from raison.report.style.colours import SIGNED
from raison.report.style.modules import joined

__all__ = [
    "Markup",
    "asset",
    "assets",
    "breakable",
    "document",
    "drawing",
    "escaped",
    "minus",
    "rendered",
    "scripts",
]

_UNPRINTABLE = dict.fromkeys([0, *range(0xD800, 0xE000), *map(ord, OVERRIDES)], "\ufffd")
"""What HTML cannot hold, and overrides of the text's direction."""
# HTML reads a carriage return as a line feed unless it is written as a reference.
_RETURN = {13: "&#13;"}


def escaped(value: object) -> Markup:
    """Text for element content and quoted attributes; what must not be in it becomes the replacement character."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(str(value).translate(_UNPRINTABLE)).translate(_RETURN))


def breakable(label: str) -> Markup:
    """A label with places where a narrow screen may break it."""
    shown = escaped(label)
    for place in "_(/":
        shown = shown.replace(place, Markup(f"{place}<wbr>"))
    return shown


def minus(number: str) -> str:
    """A number's text with true minus signs, which are as wide as the plus and are read aloud by screen readers."""
    return number.replace("-", "\N{MINUS SIGN}")


TEMPLATES = Environment(
    loader=PackageLoader("raison.report"),
    autoescape=True,
    finalize=escaped,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.policies["json.dumps_kwargs"] = {"sort_keys": False}
TEMPLATES.filters.update(breakable=breakable, minus=minus, place=partial(quote, safe="/#"))
TEMPLATES.tests["kind"] = lambda value, name: type(value).__name__ == name
TEMPLATES.globals.update(phrases=phrases, signed=SIGNED)


def rendered(template: str, values: Mapping[str, object]) -> Markup:
    """A file of templates/ with its values."""
    return Markup(TEMPLATES.get_template(template).render(values))


def drawing(svg: str) -> Markup:
    """A drawing of matplotlib, which escapes the texts of a figure itself."""
    return Markup(svg)


def assets(names: Iterable[str]) -> Markup:
    """Style sheets of assets/, one after the other."""
    return Markup().join(Markup(asset(name)) for name in names)


def scripts(names: Iterable[str]) -> Markup:
    """Scripts of assets/ with all that they import, as one; nothing for none."""
    text = joined(names, asset)
    return Markup(text and f'"use strict";\n{text}')


def asset(name: str) -> str:
    """A file of assets/."""
    return files("raison.report").joinpath("assets", name).read_text("utf-8")


def document(title: str, body: Markup, styles: Iterable[str], run: Iterable[str] = ()) -> str:
    """A standalone HTML page.

    `run` are its scripts. Its policy forbids loading anything, and any script or style but its own, identified by their
    hashes, whatever the texts contain.
    """
    body, rules = _without_styles(body)
    sheet, script = Markup("\n").join([assets(styles), rules]), scripts(run)
    values = {"title": title, "body": body, "sheet": sheet, "script": script}
    hashes = {"sheet_hash": _hash(sheet), "script_hash": _hash(script)}
    return str(rendered("page.html", values | hashes)) + "\n"


def _without_styles(body: Markup) -> tuple[Markup, Markup]:
    """The body with numbers in place of its elements' inline styles, which its policy forbids, and a sheet with these
    styles.

    Unknown inline styles stay, and have no effect.
    """
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f' data-style="{numbers.setdefault(match[1], len(numbers))}"'

    numbered = Markup(_STYLE.sub(number, body))
    # As strong as an inline style: no rule of the pages' sheets has as many parts.
    rules = [f"html {4 * _PLACE.format(place)} {{{style}}}" for style, place in numbers.items()]
    return numbered, Markup("\n".join(rules))


_PLACE = '[data-style="{}"]'
_STYLE = re.compile(r' style="([\w\s#%.,:;()\'+-]*)"')


def _hash(content: str) -> str:
    """The hash as browsers compute it, of the content between the tags of a script or a sheet."""
    return base64.b64encode(hashlib.sha256(f"\n{content}".encode()).digest()).decode()
