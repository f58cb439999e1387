"""HTML that is safe by construction: a template, whose values are all escaped, and the shell of a standalone page.

A view writes `html("<td>{}</td>", value)`; the template is a constant of the program (a test sees to it), and every
value that is not Markup itself is escaped. Strings that were put together by other means are text, and shown as such.
"""

import base64
import hashlib
import html as stdlib_html
import json
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any, final

import markupsafe

_UNPRINTABLE = dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd")
# HTML reads a carriage return as a line feed unless it is written as a reference.
_RETURN = {13: "&#13;"}


@final
class Markup(markupsafe.Markup):
    """HTML as it is: the only type of string that a template takes over unescaped."""

    __slots__ = ()

    @classmethod
    def escape(cls, s: Any, /) -> "Markup":
        """Text for element content and quoted attributes; what HTML cannot hold becomes the replacement character."""
        if isinstance(s, Markup):
            return s
        return cls(stdlib_html.escape(str(s).translate(_UNPRINTABLE)).translate(_RETURN))


NOTHING = Markup()


def html(template: str, *values: object) -> Markup:
    """A constant template with each value, escaped unless it is Markup, in the place of a {}."""
    return Markup(template).format(*values)


def joined(parts: Iterable[object], between: str = "") -> Markup:
    """All parts, one after the other, escaped unless they are Markup."""
    return Markup.escape(between).join(parts)  # type: ignore[arg-type]


def lines(parts: Iterable[Markup]) -> Markup:
    """The parts that hold anything, a line each."""
    return joined((part for part in parts if part), "\n")


def drawing(svg: str) -> Markup:
    """What matplotlib drew: it escapes the texts of a figure itself."""
    return Markup(svg)


def data(value: object) -> Markup:
    """An element that holds a value for the page's script, as JSON in which no element can end or begin."""
    text = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").translate(_UNPRINTABLE)
    return html('<script type="application/json">{}</script>', Markup(text))


def asset(name: str) -> Markup:
    """A file of assets/: style or script."""
    return Markup(files("raison.report").joinpath("assets", name).read_text("utf-8"))


def document(title: str, body: Markup, styles: tuple[str, ...], script: Markup = NOTHING) -> str:
    """A standalone HTML page.

    Its policy keeps it from loading anything, and from any script and any style but its own, told by their hashes,
    whatever the texts hold.
    """
    body, rules = _without_styles(body)
    sheet = lines([*map(asset, styles), rules])
    code = html("<script>\n{}</script>\n", script) if script else NOTHING
    allowed = html("'sha256-{}'", _hash(script)) if script else html("'none'")
    return str(html(_PAGE, allowed, _hash(sheet), title, sheet, body, code))


def _without_styles(body: Markup) -> tuple[Markup, Markup]:
    """The body with numbers in place of its elements' styles, which its policy does not allow, and a sheet of them.

    What looks like no style of ours stays, and has no effect.
    """
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f' data-style="{numbers.setdefault(match[1], len(numbers))}"'

    numbered = Markup(_STYLE.sub(number, body))
    # As strong as a style of an element's own: no rule of the pages' sheets has as many parts.
    rules = [f"html {4 * _PLACE.format(place)} {{{style}}}" for style, place in numbers.items()]
    return numbered, Markup("\n".join(rules))


_PLACE = '[data-style="{}"]'
_STYLE = re.compile(r' style="([\w\s#%.,:;()\'+-]*)"')


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src {}; \
style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{}</title>
<style>
{}</style>
</head>
<body>
{}
{}</body>
</html>
"""


def _hash(content: str) -> str:
    """As browsers compute it, from what stands between the tags of a script or a sheet."""
    return base64.b64encode(hashlib.sha256(f"\n{content}".encode()).digest()).decode()
