"""The pages of a study in a narrow window: nothing is wider than it, and what scrolls can be reached and is named."""

import json
from typing import TYPE_CHECKING

from raison.report.pages.document import page
from raison.report.tables.records import AnsweredQuestion, AnsweredQuestions, Cell, Document, Reasons, Section, Table
from tests.browser.test_look import NARROW, SCHEMES, axe

if TYPE_CHECKING:
    from playwright.sync_api import Browser

METHODS = ("attention_last", "attention_rollout", "input_x_gradient", "integrated_gradients", "kernel_shap", "saliency")


def wide(title: str) -> Table:
    rows = tuple((name, tuple(Cell("0.123", "[0.100, 0.200]") for _ in METHODS)) for name in METHODS)
    return Table(title, ("method", *METHODS), rows, "What it says.")


def test_a_narrow_window_cuts_nothing_off(browser: "Browser") -> None:
    lights = AnsweredQuestions((AnsweredQuestion("Verdict:", "green", "trust", "trust"),))
    content = Document(
        title="A study",
        sections=(
            Section("One", (wide(""), lights)),
            Section("Another", (wide(""), wide("Named"))),
            Section("Same", (wide("Same"),)),
            Section("Left out", (Reasons((("kernel_shap", "it is slow"),)),), "left-out"),
        ),
        up={name: f"{name}.html" for name in METHODS},
    )
    opened = browser.new_context(viewport=NARROW, bypass_csp=True).new_page()
    opened.set_content(page(content, draw=False))
    for scheme in SCHEMES:
        opened.emulate_media(color_scheme=scheme)
        found = axe.Axe().run(opened).response["violations"]
        assert not found, json.dumps([(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found])
    assert opened.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    # A name that is said once: of a table with the title of its section, and of a light.
    assert opened.get_by_role("heading", name="Same").count() == 1
    assert opened.locator("dl.questions dd").inner_text() == "trust"
    heads = opened.locator("#left-out thead th").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).textAlign)"
    )
    assert heads == ["left", "left"]
    opened.context.close()


def test_nothing_is_cut_off_on_paper(browser: "Browser") -> None:
    names = (*METHODS, "decompx", "deep_lift", "globenc")
    rows = tuple((name, tuple(Cell("0.1234*", "[0.1000, 0.2000]") for _ in names)) for name in names)
    content = Document(title="A study", sections=(Section("One", (Table("", ("method", *names), rows, ""),)),))
    # A sheet of A4 between its margins.
    opened = browser.new_context(viewport={"width": 718, "height": 1000}, bypass_csp=True).new_page()
    opened.set_content(page(content, draw=False))
    opened.emulate_media(media="print")
    width = "(all) => all.map((one) => one.getBoundingClientRect().right)"
    assert max(opened.locator("table.results :is(th, td)").evaluate_all(width)) <= 718
    opened.context.close()
