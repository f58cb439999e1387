"""How the component looks, and whether everyone can use it: light and dark, wide and narrow, without a mouse."""

import json
from typing import TYPE_CHECKING, Literal

import pytest

import raison
from raison.report.explanations.html import page as static_page
from tests.browser.conftest import Opened, models
from tests.browser.stage import TEXT, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Page, ViewportSize

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe: pip install axe-playwright-python")

WIDE: "ViewportSize" = {"width": 1280, "height": 720}
NARROW: "ViewportSize" = {"width": 360, "height": 740}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LOOKS = tuple(zip(SCHEMES, (WIDE, NARROW), strict=True))
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


def busy_stage(opened: Opened) -> Stage:
    """With two maps, the bar of a word, and everything unfolded."""
    stage = opened(LONG, {"model_name": "words", "linked": True})
    stage.page.locator("article .unit").nth(2).click()
    stage.page.get_by_label("Word", exact=True).fill("dull")
    stage.page.get_by_role("button", name="Exchange").click()
    stage.page.wait_for_function("() => document.querySelectorAll('article').length === 2")
    stage.settle()
    stage.page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    stage.page.locator("article").last.locator(".unit").nth(1).press("Enter")
    return stage


def fits(page: "Page", looks: "Sequence[tuple[Literal['light', 'dark'], ViewportSize]]" = LOOKS) -> None:
    """In every look axe finds no violation, and nothing is cut off."""
    for scheme, viewport in looks:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(viewport)
        found = axe.Axe().run(page).response["violations"]
        assert not found, json.dumps([(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found])
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(WIDE)


def test_axe_finds_no_violation_and_nothing_is_cut_off(opened: Opened) -> None:
    fits(busy_stage(opened).page)


def test_forced_colours_keep_the_borders_of_controls(opened: Opened) -> None:
    stage = opened(values={"model_name": "words"}, forced_colors="active")
    border = stage.page.get_by_label("Method", exact=True).evaluate("one => getComputedStyle(one).borderTopColor")
    ground = stage.page.get_by_label("Method", exact=True).evaluate("one => getComputedStyle(one).backgroundColor")
    assert border != ground


def assert_painted_alike(page: "Page", other: "Page", read: str) -> None:
    """What is read of both is the same in either colour scheme, and not the same in both schemes."""
    painted: list[object] = []
    for scheme in SCHEMES:
        for one in (page, other):
            one.emulate_media(color_scheme=scheme)
        painted.append(page.evaluate(read))
        assert painted[-1] == other.evaluate(read)
    assert painted[0] != painted[1]
    page.emulate_media(color_scheme="light")


@pytest.mark.parametrize("method", ["occlusion", "saliency"])
def test_a_map_is_painted_as_on_every_other_page(opened: Opened, method: str) -> None:
    stage = opened(values={"method": method})
    e = raison.explain(models()["tiny"], TEXT, method, progress=False)
    # Not in the same page, whose policy would hold for this one, too.
    other = stage.page.context.new_page()
    other.set_content(static_page(e))
    assert_painted_alike(stage.page, other, PAINT)
    assert len(stage.page.evaluate(PAINT)) == len(e.units)
    assert stage.page.locator(TOLD).all_inner_texts() == other.locator(TOLD).all_inner_texts()
