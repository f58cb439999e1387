"""Every element of a page stands in a constant template, whose values are escaped: no view can forget to."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from raison.report.style.markup import Markup, html, joined

REPORT = Path(__file__).parents[2] / "src/raison/report"
MARKUP = REPORT / "style/markup.py"
VIEWS = [path for path in sorted(REPORT.rglob("*.py")) if path != MARKUP]
TAG = re.compile(r"<[a-zA-Z/!]")
ELSEWHERE = {
    # Markdown has no mark of its own for these; what stands between them is escaped as Markdown.
    "examples.py": {"<u>**", "**</u>", "<strong>", "</strong>"},
    "results.py": {"<u>{}</u>"},
    "papers.py": {"<u>{}</u>"},
    # What is looked for in matplotlib's output, to leave it out.
    "canvas.py": {"<svg", "<style.*?</style>|<!--.*?-->|<metadata.*?</metadata>"},
}
"""Constants with a tag that are no template of a page, each with its reason."""
AS_IS = {"drawing": {"canvas.py"}}
"""Functions of markup.py that take text over unescaped, and the only files that call them."""


def _constants(tree: ast.Module) -> Iterator[ast.Constant]:
    """Every string constant, also those within f-strings, that is neither a docstring nor a template of `html`."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    said |= {id(node.args[0]) for node in ast.walk(tree) if _called(node) == "html" and node.args}  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def problems(source: str, file: str) -> list[str]:
    tree = ast.parse(source)
    found = [
        f"{file}:{node.lineno}: a tag outside a template: {node.value!r:.60}"
        for node in _constants(tree)
        if TAG.search(node.value) and node.value not in ELSEWHERE.get(file, set())
    ]
    for node in ast.walk(tree):
        name = _called(node)
        if name == "html" and not (node.args and isinstance(node.args[0], ast.Constant)):  # type: ignore[attr-defined]
            found.append(f"{file}:{node.lineno}: a template that is no constant")  # type: ignore[attr-defined]
        elif name == "html" and "={" in node.args[0].value:  # type: ignore[attr-defined]
            found.append(f"{file}:{node.lineno}: an attribute without quotes")  # type: ignore[attr-defined]
        if name in ("Markup", "escape") or (name in AS_IS and file not in AS_IS[name]):
            found.append(f"{file}:{node.lineno}: {name}(...) outside markup.py")  # type: ignore[attr-defined]
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [getattr(node, "module", None), *(alias.name for alias in node.names)]
            found += [f"{file}:{node.lineno}: imports {name}" for name in modules if name in ("html", "markupsafe")
                      and getattr(node, "module", None) != "raison.report.style.markup"]  # fmt: skip
    return found


def test_every_view_is_looked_at() -> None:
    assert MARKUP.exists()
    assert len(VIEWS) > 20


@pytest.mark.parametrize("view", VIEWS, ids=lambda path: path.name)
def test_tags_stand_in_constant_templates_only(view: Path) -> None:
    assert not problems(view.read_text(encoding="utf-8"), view.name)


@pytest.mark.parametrize(
    "line",
    [
        'f"<b>{name}</b>"',
        '"<b>" + name + "</b>"',
        '"<b>%s</b>" % name',
        '"<b>{}</b>".format(name)',
        '"".join(["<b>", name])',
        'html("<b>" + name)',
        'html(f"<b>{name}</b>")',
        "html(template, name)",
        "html('<b class={}>', name)",
        "Markup(name)",
        "drawing(name)",
        "import html",
        "from html import escape",
        "from markupsafe import Markup",
    ],
)
def test_what_would_forget_to_escape_is_found(line: str) -> None:
    assert problems(line, "new_view.py")


def test_a_harmless_line_is_not() -> None:
    assert not problems('"""Says <b>."""\nhtml("<b>{}</b>", name)\nx = f"{a} < {b}"', "new_view.py")


HOSTILE = "<b a='1' b=\"2\">&amp;\r\x00\ud800"
SAFE = "&lt;b a=&#x27;1&#x27; b=&quot;2&quot;&gt;&amp;amp;&#13;\ufffd\ufffd"


def test_values_are_escaped_and_markup_is_not() -> None:
    assert html("<p>{}</p>", HOSTILE) == f"<p>{SAFE}</p>"
    assert html("{} {}", html("<i>{}</i>", "a"), HOSTILE) == f"<i>a</i> {SAFE}"
    assert joined([html("<br>"), HOSTILE], "<") == f"<br>&lt;{SAFE}"
    assert html("<br>") + HOSTILE == f"<br>{SAFE}"
    assert HOSTILE + html("<br>") == f"{SAFE}<br>"
    assert html("{:>5,}|{:.1f}", 1234, 0.25) == "1,234|0.2"
    assert isinstance(joined([HOSTILE]), Markup)


def test_strings_that_only_claim_to_be_html_are_text() -> None:
    import markupsafe

    class Claims:
        def __html__(self) -> str:
            return "<script>"

    assert html("{}", markupsafe.Markup("<b>")) == "&lt;b&gt;"
    assert "<" not in html("{}", Claims())
