"""Answers and their sources, on the served page: a statement colours what it rests on, a source what rests on it."""

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import raison
from raison.report.explanations.citations_page import article
from raison.report.explanations.citations_page import page as static_page
from tests.browser.conftest import ServedPage
from tests.browser.test_look import assert_painted_alike, fits
from tests.browser.written import becomes, writer

if TYPE_CHECKING:
    from playwright.sync_api import Page

QUESTION = "who told a story?"
SOURCES = {
    "sea": "the old sailor told a story about the sea. it was quiet.",
    "plot": "a dull plot and nobody believed him at all.",
    "end": "the end is good and the sea is quiet.",
}
ANSWER = "the sailor told it. a quiet story."
PARTS = "article.citations :is(.statement, .source, .sentence-of, td.cell)"
PAINT = f"""() => [...document.querySelectorAll("{PARTS}")].map((one) => {{
    const {{ backgroundColor, color, borderInlineStartColor }} = getComputedStyle(one);
    const said = one.textContent.replace(/\\s/g, "");
    return [said, backgroundColor, color, borderInlineStartColor, one.ariaPressed];
}})"""
TOLD = "() => [...document.querySelectorAll('.source .told')].map((one) => one.textContent)"
COLOURS = "() => [...document.querySelectorAll('.statement')].map((one) => one.style.cssText.split(';')[0])"


@cache
def cited() -> raison.Citations:
    found: Any = raison.cite(writer(), QUESTION, SOURCES, answer=ANSWER, template="plain")
    return found


def opened(served: ServedPage) -> "Page":
    """The page with everything asked by its link."""
    asked = [("face", "cite"), ("question", QUESTION), ("answer", ANSWER), ("template", "plain")]
    asked += [pair for name, text in SOURCES.items() for pair in (("source", name), ("text", text))]
    page = served("#" + urlencode(asked))
    page.locator("article.citations").wait_for()
    return page


def test_statements_and_sources_colour_each_other(served: ServedPage) -> None:
    page = served()
    page.get_by_role("link", name="Answers and sources").click()
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_role("button", name="Remove source 1").click()
    page.get_by_role("button", name="Add a source").click()
    for place, (name, text) in enumerate(SOURCES.items()):
        page.get_by_label("Name").nth(place).fill(name)
        page.get_by_label("Source", exact=True).nth(place).fill(text)
    page.get_by_label("Answer, if not").fill(ANSWER)
    page.get_by_label("Template").select_option("plain")
    page.get_by_role("button", name="Explain").click()
    states = article(cited()).states
    becomes(page, TOLD, states.told[0])
    # Lights are said in words.
    assert all(any(light in said for light in ("used", "undecided")) for said in states.told[0])
    page.locator(".statement").nth(1).focus()
    becomes(page, TOLD, states.told[1])
    page.locator(".source").nth(2).hover()
    becomes(page, TOLD, ["", "", "coloured: what rests on it"])
    becomes(page, COLOURS, [states.palette[row[2]].split(";")[0].replace(":", ": ", 1) for row in states.scores])
    page.mouse.move(0, 0)
    becomes(page, TOLD, states.told[0])
    page.locator(".source").nth(1).press("Enter")
    page.get_by_label("Question").focus()
    becomes(page, TOLD, ["", "coloured: what rests on it", ""])
    # The link holds what was asked.
    page.reload()
    becomes(page, TOLD, states.told[0])


def test_it_is_painted_as_on_its_page_of_its_own(served: ServedPage) -> None:
    page = opened(served)
    other = page.context.new_page()
    other.set_content(static_page(cited()))
    assert_painted_alike(page, other, PAINT)
    assert page.locator(".legend").inner_text() == other.locator(".legend").inner_text()


def test_old_and_new_stand_side_by_side_and_undo_goes_back(served: ServedPage) -> None:
    page = opened(served)
    states = article(cited()).states
    becomes(page, TOLD, states.told[0])
    page.get_by_label("Answer, if not").fill("a quiet story.")
    page.get_by_role("button", name="Explain").click()
    page.get_by_role("article", name="Now").wait_for()
    other: Any = raison.cite(writer(), QUESTION, SOURCES, answer="a quiet story.", template="plain")
    becomes(page, TOLD, [*states.told[0], *article(other).states.told[0]])
    # Each answer colours its own sources.
    page.get_by_role("article", name="Before").locator(".statement").nth(1).focus()
    becomes(page, TOLD, [*states.told[1], *article(other).states.told[0]])
    page.get_by_role("button", name="Undo").click()
    becomes(page, TOLD, states.told[0])
    assert page.get_by_label("Answer, if not").input_value() == ANSWER
    page.get_by_role("button", name="Redo").click()
    becomes(page, TOLD, [*states.told[0], *article(other).states.told[0]])
    page.get_by_label("Beside it").select_option(label="nothing")
    becomes(page, TOLD, article(other).states.told[0])
    page.reload()
    becomes(page, TOLD, article(other).states.told[0])


def test_removal_and_seed_of_a_link_are_those_of_the_citations(served: ServedPage) -> None:
    method = "context_cite(ablations=4)"
    given = {"face": "cite", "question": QUESTION, "answer": ANSWER, "template": "plain", "method": method}
    given |= {"within": "source", "removal": "unk", "seed": 3, "draws": 0}
    pairs = [*given.items(), *(pair for name, text in SOURCES.items() for pair in (("source", name), ("text", text)))]
    page = served("#" + urlencode(pairs))
    page.locator("article.citations").wait_for()
    options = {"answer": ANSWER, "template": "plain", "method": method, "within": "source", "draws": 0}
    found: Any = raison.cite(writer(), QUESTION, SOURCES, removal="unk", seed=3, **options)
    becomes(page, TOLD, article(found).states.told[0])
    assert "removal=unk&seed=3" in page.url
    page.get_by_text("Take away").click()
    assert 'removal="unk", seed=3' in page.get_by_role("region", name="Code").inner_text()


def test_what_is_refused_leaves_no_old_colours(served: ServedPage) -> None:
    page = opened(served)
    page.get_by_label("Name").nth(1).fill("sea")
    page.get_by_role("button", name="Explain").click()
    page.get_by_text("Two sources are named").wait_for()
    assert page.locator("article").count() == 0
    page.get_by_label("Name").nth(1).fill("plot")
    page.get_by_label("Source", exact=True).nth(1).fill(" ")
    page.get_by_role("button", name="Explain").click()
    page.get_by_text("the source 'plot' is empty or blank").wait_for()


def test_axe_finds_no_violation_and_nothing_is_cut_off(served: ServedPage) -> None:
    page = opened(served)
    page.get_by_label("Answer, if not").fill("a quiet story.")
    page.get_by_role("button", name="Explain").click()
    page.get_by_role("article", name="Now").wait_for()
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    fits(page)
