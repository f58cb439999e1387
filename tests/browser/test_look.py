"""How the component looks, and whether everyone can use it: light and dark, wide and narrow, without a mouse."""

import json
from typing import Any

import pytest

import raison
from raison.report.explanations.html import page as static_page
from tests.browser.conftest import Opened, models
from tests.browser.stage import TEXT, Stage

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe: pip install axe-playwright-python")

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
LONG = (
    "a modest pleasure with ease and a rather dull Donaudampfschifffahrtsgesellschaftskapitänskajütenschlüssel, which "
    "nobody expected of a film about the sea"
)
PAINT = """() => [...document.querySelectorAll("article:last-of-type .unit")].map((unit) => {
    const { backgroundColor, color } = getComputedStyle(unit);
    const said = unit.title || unit.dataset.tip;
    return [unit.textContent, unit.ariaLabel, said, unit.dataset.units, backgroundColor, color];
})"""

TOLD = "article .legend, article table.top, article .verdict, article .goal"


def busy_stage(opened: Opened, **options: Any) -> Stage:
    """With two maps, the bar of a word, and everything unfolded."""
    stage = opened(LONG, {"model_name": "words", "linked": True}, **options)
    stage.page.locator("article .unit").nth(2).click()
    stage.page.get_by_label("Word", exact=True).fill("dull")
    stage.page.get_by_role("button", name="Exchange").click()
    stage.page.wait_for_function("() => document.querySelectorAll('article').length === 2")
    stage.settle()
    stage.page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    stage.page.locator("article").last.locator(".unit").nth(1).press("Enter")
    return stage


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_axe_finds_no_violation_and_nothing_is_cut_off(opened: Opened, scheme: str, viewport: dict[str, int]) -> None:
    stage = busy_stage(opened, color_scheme=scheme, viewport=viewport)
    found = axe.Axe().run(stage.page).response["violations"]
    assert not found, json.dumps(
        [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found], indent=1
    )
    width = stage.page.evaluate("() => document.documentElement.scrollWidth")
    assert width <= viewport["width"]


def test_forced_colours_keep_the_borders_of_controls(opened: Opened) -> None:
    stage = opened(values={"model_name": "words"}, forced_colors="active")
    border = stage.page.get_by_label("Method", exact=True).evaluate("one => getComputedStyle(one).borderTopColor")
    ground = stage.page.get_by_label("Method", exact=True).evaluate("one => getComputedStyle(one).backgroundColor")
    assert border != ground


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("method", ["occlusion", "saliency"])
def test_a_map_is_painted_as_on_every_other_page(opened: Opened, scheme: str, method: str) -> None:
    stage = opened(values={"method": method}, color_scheme=scheme)
    painted = stage.page.evaluate(PAINT)
    told = stage.page.locator(TOLD).all_inner_texts()
    e = raison.explain(models()["tiny"], TEXT, method, progress=False)
    # Not in the same page, whose policy would hold for this one, too.
    other = stage.page.context.new_page()
    other.set_content(static_page(e))
    assert painted == other.evaluate(PAINT)
    assert len(painted) == len(e.units)
    assert told == other.locator(TOLD).all_inner_texts()
