"""Nothing from a text, a label or a name becomes an element or an attribute of a page, whatever it is."""

import dataclasses
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.report.explanations.html import fragment, page
from raison.report.explanations.terminal import explanation_text
from raison.report.tables.writers import escape_latex, escape_markdown
from raison.studies.reports import write
from tests import study_folder
from tests.unit.core.settings.test_reading import written
from tests.unit.report.explanations.test_html import explain

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</script></style></title><script>alert(1)</script>",
    "javascript:alert(1)",
    "&lt;script&gt;<!-- --><b>",
    "]]><a href='javascript:alert(1)'>",
    "<!--<script>",
    "--></script>\u2028",
)
PLAIN = "harmless"


class Structure(HTMLParser):
    """Every element with the names of its attributes, and those values that browsers act on."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[object] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        acting = [value for name, value in attrs if name in ("href", "src", "style", "id") or name.startswith("on")]
        self.found.append((tag, [name for name, _ in attrs], acting))

    def handle_comment(self, data: str) -> None:
        self.found.append("comment")


def structure(html: str) -> list[object]:
    reader = Structure()
    reader.feed(html)
    reader.close()
    return reader.found


def filled(word: str) -> Explanation:
    """Every field that is text holds the word, and so do settings and notes."""
    e = explain("a b c")
    text = f"{word} {word} b"
    units = tuple(dataclasses.replace(unit, text=word) for unit in e.units)
    changes: dict[str, Any] = {
        "text": text,
        "units": units,
        "classes": (word, f"not {word}"),
        "target": f"not {word}",
        "against": word,
        "config": {word: word, "list": [word]},
        "notes": {word: word, "caution": word, "list": [word]},
    }
    changes |= dict.fromkeys(("unit", "of", "method", "model", "removal", "version"), word)
    return dataclasses.replace(e, **changes)


def filled_output(word: str) -> GenerationExplanation:
    e = written()
    token = dataclasses.replace(e.tokens[0], text=word, against=word, against_probability=0.1, notes={word: word})
    units = (dataclasses.replace(e.units[0], text=word),)
    changes: dict[str, Any] = {"tokens": (token,), "units": units, "config": {word: word}, "notes": {word: word}}
    changes |= dict.fromkeys(("unit", "of", "method", "model", "removal", "version", "output"), word)
    return dataclasses.replace(e, **changes)


VIEWS = {
    "page": lambda word: page(filled(word)),
    "pages": lambda word: page([filled(word), filled(word)]),
    "fragment": lambda word: fragment(filled(word)),
    "output": lambda word: page(filled_output(word)),
    "outputs": lambda word: page([filled_output(word)] * 2),
    "output fragment": lambda word: fragment(filled_output(word)),
}


@pytest.mark.parametrize("word", HOSTILE)
@pytest.mark.parametrize("view", VIEWS)
def test_no_element_and_no_attribute_comes_from_data(view: str, word: str) -> None:
    assert structure(VIEWS[view](word)) == structure(VIEWS[view](PLAIN))


TERMINAL = (
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\u202edesrever",
    "[red]word[/red]",
    "[/]",
    "[link=x]y",
    "\r\b",
)
SHOWN = {
    "explanation": lambda word: explanation_text(filled(word)),
    "output": lambda word: explanation_text(filled_output(word)),
}


@pytest.mark.parametrize("word", TERMINAL)
@pytest.mark.parametrize("view", SHOWN)
def test_nothing_in_data_moves_a_terminal_or_counts_as_markup(view: str, word: str) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=200)
    console.print(SHOWN[view](word))
    assert isinstance(console.file, io.StringIO)
    said = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", said)
    # Codes of colour are the view's own: none is one that data asked for.
    assert "\x1b[31mred" not in console.file.getvalue()
    if word.startswith("["):
        assert word in said


def test_specials_of_markdown_and_latex() -> None:
    name = r"a|b*c_d`e\f<g>&[x](javascript:y)"
    assert escape_markdown(name) == r"a\|b\*c\_d\`e\\f&lt;g>&amp;[x]\(javascript:y)"
    assert escape_latex("50% of $x_1^2 & #{~}\\") == (
        r"50\% of \$x\_1\textasciicircum{}2 \& \#\{\textasciitilde{}\}\textbackslash{}"
    )


def study_pages(word: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[object]]:
    """The structure of each page of a study whose title, claims, texts, labels and models hold the word."""
    plain = study_folder.explanation_of

    def made(*arguments: Any) -> Explanation:
        names = dict.fromkeys(("model", "removal", "version", "unit"), word)
        return dataclasses.replace(
            plain(*arguments), classes=(word, f"not {word}"), target=word, notes={word: word, "caution": word}, **names
        )

    told = json.dumps(f"{word} says")
    file = re.sub(r'^(title|source|reference|about|says) = ".*"$', rf"\1 = {told}", study_folder.STUDY, flags=re.M)
    few = ("lime", "saliency", "random(draws=24)", "random")
    monkeypatch.setattr(study_folder, "METHODS", {name: study_folder.METHODS[name] for name in few})
    monkeypatch.setattr(study_folder, "STUDY", file)
    monkeypatch.setattr(study_folder, "TEXTS", (f"a {word} b", f"{word} c"))
    monkeypatch.setattr(study_folder, "MODELS", {"small": word})
    monkeypatch.setattr(study_folder, "explanation_of", made)
    report = write(study_folder.make(folder, study_folder.Made(("small",), 2, 2))).parent
    found = {path.name: structure(path.read_text(encoding="utf-8")) for path in sorted(report.rglob("*.html"))}
    monkeypatch.undo()
    return found


def test_no_element_of_a_study_comes_from_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile, plain = (
        study_pages(word, tmp_path / name, monkeypatch)
        for name, word in (("hostile", "<script>alert(1)</script>'\"><svg/onload=alert(1)>"), ("plain", PLAIN))
    )
    assert len(hostile) >= 3
    assert hostile == plain
