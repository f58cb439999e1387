"""The page of runs: filters, sorts, words and maps of a folder of explained files, and of a comparison beside it."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import raison
from raison.report.explanations.html import page as static_page
from raison.report.style.modules import joined
from raison.web.component.sources import read
from raison.web.server.served import ServedModels
from raison.web.server.settings import VisibleFolders
from tests.browser.conftest import models
from tests.browser.windows import window
from tests.integration.test_serve_live import listening

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TEXTS = [*["a modest film", "dull film with ease", "ease of a film", "a pleasure with the film"] * 5, "dull <b> & <i>"]
LABELS = [*["positive", "negative", "positive", "negative"] * 5, "positive"]
SHOWN = """() => {
    const table = document.querySelector('.place-table');
    return table?.querySelector('tbody') && !table.hasAttribute('aria-busy');
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that shows a folder of explanations."""
    place = tmp_path_factory.mktemp("shown")
    rows = [{"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)]
    (place / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    model = models()["words"]
    raison.explain_file(
        model, place / "texts.jsonl", place / "runs" / "files", "occlusion", format="jsonl", progress=False
    )
    with listening(ServedModels({"words": model}, shown=VisibleFolders(runs=place / "runs"))) as port:
        yield f"http://127.0.0.1:{port}/runs"


@pytest.fixture
def page(browser: "Browser", address: str) -> "Iterator[Page]":
    """The page, in the end without a complaint in its console."""
    problems: list[str] = []
    with window(browser, problems) as page:
        page.goto(address)
        page.wait_for_function(SHOWN)
        page.get_by_label("Wrong only").wait_for()
        yield page
    assert not problems


def texts(page: "Page") -> list[str]:
    return page.locator(".place-table tbody .text-out").all_inner_texts()


def said(page: "Page") -> str:
    return page.locator(".place-status").inner_text()


def test_texts_are_filtered_sorted_and_kept_in_the_link(page: "Page") -> None:
    assert said(page).startswith("21 of 21 texts, accuracy 0.71")
    page.get_by_label("Wrong only").check()
    page.wait_for_function("() => document.querySelector('.place-status').innerText.startsWith('6 of 21')")
    assert set(texts(page)) == {"a pleasure with the film", "dull <b> & <i>"}
    page.get_by_role("button", name="Confidence").press("Enter")
    page.wait_for_function("() => document.querySelector('th[aria-sort=descending]')")
    page.wait_for_function(SHOWN)
    assert texts(page)[0] == "dull <b> & <i>"
    page.get_by_role("button", name="dull <b> & <i>").click()
    page.locator("article .unit").first.wait_for()
    url = page.url
    page.goto("about:blank")
    page.goto(url)
    page.locator("article .unit").first.wait_for()
    page.wait_for_function(SHOWN)
    assert (said(page), texts(page)[0]) == ("6 of 21 texts", "dull <b> & <i>")


def test_back_takes_back_a_choice(page: "Page") -> None:
    page.get_by_label("Wrong only").check()
    page.wait_for_function("() => document.querySelector('.place-status').innerText.startsWith('6 of 21')")
    page.get_by_label("With the word").fill("film")
    page.wait_for_function("() => location.hash.includes('film')")
    page.get_by_role("button", name="a pleasure with the film").first.click()
    page.locator("article .unit").first.wait_for()
    page.go_back()
    page.wait_for_function("() => !document.querySelector('article')")
    page.wait_for_function(SHOWN)
    assert page.get_by_label("With the word").input_value() == "film"
    page.go_back()
    page.wait_for_function("() => document.querySelector('.place-status').innerText.startsWith('21 of 21')")
    page.go_forward()
    page.wait_for_function("() => location.hash.includes('film') && document.querySelector('[type=checkbox]')?.checked")


def test_a_map_is_that_of_every_other_page(page: "Page") -> None:
    page.get_by_role("button", name="dull film with ease").first.press("Enter")
    page.locator("article .unit").first.wait_for()
    other = page.context.new_page()
    other.set_content(static_page(raison.explain(models()["words"], "dull film with ease", "occlusion")))
    read = "all => all.map((one) => [one.textContent, one.ariaLabel, getComputedStyle(one).backgroundColor])"
    assert page.locator("article .unit").evaluate_all(read) == other.locator("article .unit").evaluate_all(read)
    trust = page.get_by_role("region", name="Trust")
    assert "No audit of this model" in trust.inner_text()
    # The model that is served is that of the run.
    trust.get_by_role("button", name="Check this one").click()
    page.get_by_text("Random control").wait_for()
    assert "without “dull”" in trust.inner_text()
    page.get_by_text("Take away").click()
    expected = 'raison.explain(model, "dull film with ease", method="occlusion", unit="word"'
    assert page.get_by_role("region", name="Code").inner_text().startswith(expected)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download SVG").click()
    assert saved.value.suggested_filename == "explanation.svg"
    assert "dull" in saved.value.path().read_text("utf-8")
    page.get_by_role("link", name="Edit this text").click()
    page.wait_for_url(
        "**/#model=words&text=dull+film+with+ease&method=occlusion&unit=word&removal=delete&target=negative&of=*"
    )
    assert page.get_by_label("Removal").input_value() == "delete"


def test_words_and_slices_lead_to_their_texts(page: "Page") -> None:
    page.locator("summary", has_text="Words").click()
    page.get_by_role("table", name="Words that decide more").get_by_role("button", name="dull").click()
    page.wait_for_function("() => document.querySelector('.place-status').innerText.startsWith('5 of 21')")
    assert page.get_by_label("Decided by").input_value() == "dull"
    page.locator("summary", has_text="Slices").click()
    page.get_by_role("row", name="Label negative").get_by_role("button").click()
    page.wait_for_function("() => document.querySelector('.place-status').innerText.startsWith('10 of 21')")
    assert set(texts(page)) == {"dull film with ease", "a pleasure with the film"}
    assert page.get_by_label("Decided by").input_value() == ""


def test_axe_finds_no_violation_and_nothing_is_cut_off(page: "Page") -> None:
    # Without axe this test alone is skipped.
    from tests.browser.test_look import fits

    page.get_by_role("button", name="dull film with ease").first.click()
    page.locator("article .unit").first.wait_for()
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.get_by_role("table", name="Sequences of two").first.wait_for()
    fits(page)


def test_a_wide_table_scrolls_in_its_box_and_its_texts_stay_readable(page: "Page") -> None:
    box = page.locator(".place-table .table-box")
    # As of a comparison with five metrics.
    box.evaluate("""(box) => box.querySelectorAll("tr").forEach((row) => {
        for (let more = 0; more < 8; more++) {
            const cell = document.createElement(row.firstChild.tagName);
            cell.append("comprehensiveness");
            row.append(cell);
        }
    })""")
    assert box.evaluate("(box) => box.scrollWidth > box.clientWidth")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".text-out").first.bounding_box()["height"] < 60  # type: ignore[index]


def test_what_rounds_to_zero_has_no_minus_and_one_is_no_plural(page: "Page") -> None:
    said = "[decimal(-0.0001), decimal(-0.01), decimal(null), counted(1, 'text'), counted(1200, 'text')]"
    assert page.evaluate(f"() => {{ {joined(['tables.js'], read)}; return {said}; }}") == [
        "0.000",
        "\N{MINUS SIGN}0.010",
        "\N{EN DASH}",
        "1 text",
        "1,200 texts",
    ]


def test_a_link_to_a_run_that_is_not_there_says_so(browser: "Browser", address: str) -> None:
    with window(browser, []) as page:
        page.goto(f"{address}#run=nope&row=x")
        page.wait_for_function(SHOWN)
        page.wait_for_function("() => document.querySelector('.place-status').innerText.includes('21 of 21')")
        assert said(page).startswith("There is no run nope here. This is files: 21 of 21 texts")
