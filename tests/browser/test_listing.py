"""A list of explanations: its table in a notebook, and as plain HTML where no kernel runs."""

import re
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import raison
from raison.report.explanations.html import beside
from raison.report.explanations.html import page as static_page
from raison.report.pages.listing import listing
from raison.report.pages.saving import save as raison_save
from raison.runs.words import LEAST
from tests.browser.conftest import models
from tests.browser.stage import ADDRESS, place
from tests.browser.test_look import LOOKS, fits
from tests.browser.windows import window
from tests.browser.written import writer
from tests.unit.explaining.test_cite import cite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytest.importorskip("anywidget", reason="no anywidget: pip install 'raison[notebook]'")

TEXTS = [*["a modest film", "dull film with ease", "ease of a film", "كان ممل جدا"] * 9, "dull <b> & <i>"]
LABELS = [*["positive", "negative", "negative", "negative"] * 9, "positive"]
WIDTHS = "all => all.map((one) => one.getBoundingClientRect().width / one.parentElement.offsetWidth)"
FEW = 4 * LEAST + 1
"""As many texts of every sort as words need to be listed, and the hostile one."""
READ = "all => all.map((one) => [one.textContent, one.ariaLabel, getComputedStyle(one).backgroundColor])"


@cache
def explained() -> list[raison.Explanation]:
    return raison.explain(models()["words"], TEXTS, "occlusion", progress=False)


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    """The widget's table, answered by the widget; in the end without a complaint in its console."""
    with table(browser, explained(), LABELS) as shown:
        yield shown


@contextmanager
def table(browser: "Browser", results: list[Any], labels: list[str] | None) -> "Iterator[Page]":
    from raison.web.component.listing import Listing

    widget, problems, sent = Listing(results, labels), [], []
    widget.send = sent.append

    def answer(message: dict[str, Any]) -> dict[str, Any]:
        widget._handle_custom_msg(message, [])
        return sent.pop()

    with window(browser, problems) as page:
        place(page, {"face": widget.face}, answer)
        page.goto(ADDRESS)
        page.locator(".place-filter form").wait_for()
        yield page
    assert not problems


@pytest.fixture
def static(browser: "Browser") -> "Iterator[Page]":
    """A notebook of two lists, which needs no script of the page's to be read."""
    with window(browser, []) as page:
        page.set_content(notebook(2 * [listing(explained(), LABELS)]))
        yield page


def notebook(parts: list[str]) -> str:
    return f"<!DOCTYPE html><html lang='en'><title>a notebook</title><main><h1>One</h1>{''.join(parts)}</main>"


@pytest.fixture
def several(browser: "Browser", tmp_path: Path) -> "Iterator[Page]":
    """A page of its own with three explanations, opened from its file."""
    problems: list[str] = []
    with window(browser, problems) as page:
        raison_save(three(), tmp_path / "e.html")
        page.goto((tmp_path / "e.html").as_uri())
        yield page
    assert not problems


@cache
def three() -> list[raison.Explanation]:
    texts = ["a modest film", "dull </script><!--<script> film", "ease of كان ممل"]
    return raison.explain(models()["words"], texts, "occlusion", progress=False)


def shown(page: "Page") -> list[str]:
    return page.locator(".place-table tbody .text-out").all_inner_texts()


def says(page: "Page", beginning: str) -> None:
    page.wait_for_function(f"() => document.querySelector('.place-status').innerText.startsWith('{beginning}')")
    page.wait_for_function("() => !document.querySelector('.place-table').hasAttribute('aria-busy')")


def test_a_list_is_a_table_that_opens_maps(page: "Page") -> None:
    says(page, "37 of 37 texts, accuracy 0.73")
    assert shown(page) == TEXTS[:25]
    page.get_by_role("button", name="Next").click()
    page.wait_for_function("() => document.querySelectorAll('.place-table tbody tr').length === 12")
    page.get_by_label("Wrong only").check()
    says(page, "10 of 37")
    page.get_by_label("Prediction").select_option("negative")
    says(page, "1 of 37")
    assert shown(page) == ["dull <b> & <i>"]
    assert "dull +0.453" in page.locator("td[data-said='Top words']").inner_text()
    page.get_by_role("button", name="dull <b> & <i>").press("Enter")
    page.locator("article .unit").first.wait_for()
    other = page.context.new_page()
    other.set_content(static_page(explained()[-1]))
    assert page.locator("article .unit").evaluate_all(READ) == other.locator("article .unit").evaluate_all(READ)
    trust = page.get_by_role("region", name="Trust")
    trust.get_by_text("Completeness gap").wait_for()
    assert trust.get_by_role("button").count() == 0
    # A notebook's address is not the table's.
    assert "#" not in page.url
    assert page.get_by_role("link").count() == 0


def test_plain_html_sorts_filters_and_opens_maps(static: "Page") -> None:
    first = static.locator("article.listing").first
    rows = first.locator("tbody tr:visible")
    assert rows.count() == len(TEXTS)
    first.get_by_label("Show texts with").fill("dull")
    assert rows.count() == 10
    first.get_by_role("button", name="No.").click()
    first.get_by_role("button", name="No.").click()
    assert rows.first.locator("summary").inner_text() == "dull <b> & <i>"
    assert "negative ✗" in rows.first.inner_text()
    rows.first.locator("summary").press("Enter")
    other = static.context.new_page()
    other.set_content(static_page(explained()[-1]))
    assert rows.first.locator(".unit").evaluate_all(READ) == other.locator("article .unit").evaluate_all(READ)
    # The second list of a notebook has a field and an order of its own.
    assert static.locator("article.listing").last.locator("tbody tr:visible").count() == len(TEXTS)


def test_a_page_of_several_sorts_filters_and_puts_maps_beside_each_other(several: "Page") -> None:
    rows = several.locator("nav tbody tr:visible")
    own = several.locator("article").nth(1).locator(".unit").evaluate_all(READ)
    bars = several.locator(".bar").evaluate_all(WIDTHS)
    several.get_by_role("button", name="probability").click()
    several.get_by_role("button", name="probability").click()
    assert "dull" in rows.first.inner_text()
    several.get_by_label("Show explanations with").fill("zzzz")
    assert re.fullmatch(r"0 of \d+", several.locator("output").first.inner_text())
    several.get_by_label("Show explanations with").fill("film")
    assert rows.count() == 2
    several.get_by_label("Show explanations with").fill("")
    for number in (1, 2, 3):
        several.get_by_label(f"Beside others: No. {number}").check()
    assert several.locator("article:visible").count() == 3
    assert several.locator(".together").inner_text().startswith("3 explanations beside each other, on the scale")
    other = several.context.new_page()
    other.set_content(beside(three()))
    # A palette has shades, a page of one scale any colour.
    assert near(several.locator("article .unit").evaluate_all(READ), other.locator("article .unit").evaluate_all(READ))
    assert several.locator(".bar").evaluate_all(WIDTHS) == other.locator(".bar").evaluate_all(WIDTHS)
    assert several.locator(".legend").all_inner_texts() == other.locator(".legend").all_inner_texts()
    several.get_by_label("Beside others: No. 3").uncheck()
    assert several.locator("article:visible").count() == 2
    # A link leads to its map, whatever is ticked.
    several.get_by_role("link", name="ease of").click()
    assert several.locator("article:visible").count() == 3
    assert several.locator("article").nth(1).locator(".unit").evaluate_all(READ) == own
    assert several.locator(".bar").evaluate_all(WIDTHS) == bars

    one_text = several.context.new_page()
    e = three()[0]
    one_text.set_content(static_page([e, three()[1], replace(e, method="other")]))
    for number, said in ((1, ""), (2, "2 explanations beside each other"), (3, "3 explanations")):
        one_text.get_by_label(f"Beside others: No. {number}").check()
        assert "Agreement" not in one_text.locator(".together").inner_text()
        assert said in one_text.locator(".together").inner_text()
    one_text.get_by_label("Beside others: No. 2").uncheck()
    assert (
        "Agreement: rank correlation of the scores +1.00, over 3 words." in one_text.locator(".together").inner_text()
    )


def near(ours: list[list[str]], theirs: list[list[str]]) -> bool:
    """The same words, and colours that differ by no more than a shade."""
    channels = [[[int(one) for one in re.findall(r"\d+", colour)] for *_, colour in these] for these in (ours, theirs)]
    apart = np.abs(np.array(channels[0]) - np.array(channels[1])).max()
    return [one[0] for one in ours] == [one[0] for one in theirs] and bool(apart <= 12)


def test_the_arrow_keys_follow_the_direction_of_a_text(several: "Page") -> None:
    units = several.locator("article").nth(2).locator(".unit")
    units.first.focus()
    several.keyboard.press("ArrowRight")
    assert several.evaluate("() => document.activeElement.textContent") == "of"
    assert several.locator("article").nth(2).locator(".unit[tabindex='0']").count() == 1


def test_a_page_of_several_is_for_everyone(several: "Page") -> None:
    several.get_by_label("Beside others: No. 1").check()
    several.get_by_label("Beside others: No. 3").check()
    fits(several)


def test_what_was_written_is_listed_with_its_maps(browser: "Browser") -> None:
    chat = [{"role": "user", "content": "the film is"}]
    options = {"max_new_tokens": 2, "progress": False}
    outputs = [raison.explain(writer(), prompt, "saliency", **options) for prompt in ("the film is", "not good", chat)]
    with table(browser, outputs, None) as page:
        says(page, "3 of 3")
        assert "Tokens" in page.locator("th").all_inner_texts()
        assert not page.get_by_label("Prediction").count()
        page.locator(".text-out").first.click()
        page.locator("article.generation button[data-token='1']").click()
        page.keyboard.press("Shift+ArrowLeft")
        page.get_by_text("(tokens 1 to 2)").wait_for()
        page.get_by_text("Take away").click()
        assert "output=" in page.get_by_role("region", name="Code").inner_text()
        fits(page, LOOKS[1:])
    # Only the second has a template that a call can name.
    found = [cite(draws=2), cite(answer="sells tea .", template="plain", draws=0)]
    with table(browser, found, None) as page:
        says(page, "2 of 2")
        assert page.locator("td[data-said='Statements']").all_inner_texts() == ["2", "1"]
        page.locator(".text-out").first.click()
        page.locator("article.citations .statement").last.click()
        page.get_by_text("Take away").wait_for()
        assert not page.locator("article.citations code").count()
        page.locator(".text-out").last.click()
        code = page.locator("article.citations code").text_content()
        assert code.startswith("raison.cite(model, ")
        assert 'template="plain", draws=0)' in code
        fits(page, LOOKS[:1])


def test_axe_finds_no_violation_and_nothing_is_cut_off(browser: "Browser") -> None:
    with table(browser, explained()[-FEW:], LABELS[-FEW:]) as page:
        page.get_by_role("button", name="dull film with ease").first.click()
        page.locator("article .unit").first.wait_for()
        page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.get_by_role("table", name="Sequences of two").first.wait_for()
        fits(page)


def test_nor_does_it_in_plain_html(browser: "Browser") -> None:
    """A text of every sort, and the hostile one."""
    with window(browser, []) as page:
        page.set_content(notebook([listing(explained()[-5:], LABELS[-5:])]))
        page.locator("summary").first.click()
        fits(page)
