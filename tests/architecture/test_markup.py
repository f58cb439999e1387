"""Every element of a page stands in a template, whose values are escaped: no view can forget to."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest

from raison.report.style import markup
from raison.report.style.markup import Markup, breakable, escaped, rendered

REPORT = Path(__file__).parents[2] / "src/raison/report"
MARKUP = REPORT / "style/markup.py"
VIEWS = [path for path in sorted(REPORT.rglob("*.py")) if path != MARKUP]
TEMPLATES = sorted((REPORT / "templates").iterdir())
TAG = re.compile(r"<[a-zA-Z/!]")
ELSEWHERE = {
    # Markdown has no mark of its own for these; what stands between them is escaped as Markdown.
    "examples.py": {"<u>**", "**</u>", "<strong>", "</strong>"},
    "writers.py": {"<u>{}</u>"},
    # What is looked for in matplotlib's output, to leave it out.
    "canvas.py": {"<svg", "<style.*?</style>|<!--.*?-->|<metadata.*?</metadata>"},
}
"""Constants with a tag that are no template of a page, each with its reason."""
AS_IS = {"drawing": {"canvas.py"}}
"""Functions of markup.py that take text over unescaped, and the only files that call them."""
WRONG = {
    "a value that is not escaped": r"\|\s*(safe|forceescape)\b|\bautoescape\b|\bMarkup\b|__html__",
    "an attribute without quotes": r"=\s*\{[{%]",
    "an attribute in single quotes": r"<[^>{%]*='[^>]*\{\{",
    "a value as the name of an element or an attribute": r"</?\{\{|<\w+ [^>\"]*\{\{",
    "a handler": r"\son\w+=",
}
"""What would let a value be more than text, by the pattern that finds it in a template."""
IN_CODE = {"sheet", "script", "styles", "states|tojson"}
"""The only values inside <style> and <script>: the project's own files, and JSON in which no element can end."""


def _constants(tree: ast.Module) -> Iterator[ast.Constant]:
    """Every string constant that is no docstring, also those within f-strings."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def problems(source: str, file: str) -> list[str]:
    """What could make markup of text in a view."""
    tree = ast.parse(source)
    found = [
        f"{file}:{node.lineno}: a tag outside a template: {node.value!r:.60}"
        for node in _constants(tree)
        if TAG.search(str(node.value)) and node.value not in ELSEWHERE.get(file, set())
    ]
    for node in ast.walk(tree):
        name = _called(node)
        if name in ("Markup", "escape") or (name in AS_IS and file not in AS_IS[name]):
            found.append(f"{file}:{node.lineno}: {name}(...) outside markup.py")  # type: ignore[attr-defined]
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            found += [
                f"{file}:{node.lineno}: imports {name}"
                for name in modules
                if name.partition(".")[0] in ("html", "markupsafe", "jinja2")
            ]
    return found


def mistakes(template: str) -> list[str]:
    """What could make markup of text in a template."""
    found = [name for name, pattern in WRONG.items() if re.search(pattern, template)]
    for code in re.findall(r"<(?:style|script)[^>]*>(.*?)</(?:style|script)>", template, re.S):
        found += [f"a value in code: {value}" for value in re.findall(r"\{\{ (.*?) \}\}", code) if value not in IN_CODE]
    return found


def test_every_view_and_every_template_is_looked_at() -> None:
    assert MARKUP.exists()
    assert len(VIEWS) > 20
    assert len(TEMPLATES) >= 10


def test_tags_stand_in_templates_only() -> None:
    assert [problem for view in VIEWS for problem in problems(view.read_text(encoding="utf-8"), view.name)] == []


def test_templates_escape_every_value() -> None:
    found = {template.name: mistakes(template.read_text(encoding="utf-8")) for template in TEMPLATES}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    "line",
    [
        'f"<b>{name}</b>"',
        '"<b>" + name + "</b>"',
        '"<b>%s</b>" % name',
        '"<b>{}</b>".format(name)',
        '"".join(["<b>", name])',
        "Markup(name)",
        "drawing(name)",
        "import html",
        "from html import escape",
        "from markupsafe import Markup",
        "import jinja2.ext",
    ],
)
def test_what_would_forget_to_escape_is_found(line: str) -> None:
    assert problems(line, "new_view.py")


@pytest.mark.parametrize(
    "line",
    [
        "<b>{{ name|safe }}</b>",
        "{% autoescape false %}{{ name }}{% endautoescape %}",
        "<b class={{ name }}>",
        "<b class='{{ name }}'>",
        "<{{ name }}>",
        "<b {{ name }}>",
        '<b onclick="f({{ name }})">',
        "<script>f({{ name }})</script>",
        "<style>b { color: {{ name }} }</style>",
    ],
)
def test_what_a_template_would_not_escape_is_found(line: str) -> None:
    assert mistakes(line)


def test_a_harmless_line_is_not() -> None:
    assert not problems('"""Says <b>."""\nx = f"{a} < {b}"', "new_view.py")
    assert not mistakes('<b class="{{ name }}"{% if x %} id="{{ x }}"{% endif %}>{{ name }}</b>')


HOSTILE = "<b a='1' b=\"2\">&amp;\r\x00\ud800"
SAFE = "&lt;b a=&#x27;1&#x27; b=&quot;2&quot;&gt;&amp;amp;&#13;\ufffd\ufffd"


@pytest.fixture
def template(monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates of the test beside the project's settings."""
    texts = {"value": "<p>{{ value }}</p>", "macro": "{% macro i(x) %}<i>{{ x }}</i>{% endmacro %}{{ i(value) }}"}
    environment = markup.TEMPLATES.overlay(loader=jinja2.DictLoader(texts))
    monkeypatch.setattr(markup, "TEMPLATES", environment)


@pytest.mark.usefixtures("template")
def test_values_are_escaped_and_markup_is_not() -> None:
    assert rendered("value", {"value": HOSTILE}) == f"<p>{SAFE}</p>"
    assert rendered("macro", {"value": HOSTILE}) == f"<i>{SAFE}</i>"
    assert rendered("value", {"value": rendered("value", {"value": 1})}) == "<p><p>1</p></p>"
    assert breakable("a_<b>") == Markup("a_<wbr>&lt;b&gt;")
    assert isinstance(escaped(HOSTILE), Markup)


@pytest.mark.usefixtures("template")
def test_a_name_that_is_misspelt_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        rendered("value", {"valeu": 1})


@pytest.mark.usefixtures("template")
def test_objects_that_only_claim_to_be_html_are_text() -> None:
    class Claims:
        def __html__(self) -> str:
            return "<script>"

    assert "<script" not in rendered("value", {"value": Claims()})
