"""The page of `raison serve`: the component over HTTP, under the server's own policy."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import raison
from raison.web.server.served import Served
from raison.web.server.settings import Access
from tests.browser.conftest import models
from tests.browser.stage import numbers
from tests.integration.test_serve_live import listening

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TEXT = "A modest pleasure with ease"
SETTLED = """() => {
    const maps = document.querySelector('.place-maps');
    return maps?.querySelector('article') && !maps.hasAttribute('aria-busy');
}"""


@contextmanager
def opened(browser: "Browser", served: Served, rest: str = "") -> "Iterator[Page]":
    """The page of a server, in the end without a complaint in its console."""
    problems: list[str] = []
    with listening(served) as port:
        page = browser.new_context(viewport={"width": 360, "height": 700}).new_page()
        page.on("console", lambda said: problems.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"http://127.0.0.1:{port}/{rest}")
        yield page
        page.context.close()
    assert not problems


def test_a_text_is_explained_and_again_when_it_is_edited(browser: "Browser") -> None:
    with opened(browser, Served(models())) as page:
        page.wait_for_function(SETTLED)
        page.get_by_label("Model").select_option("words")
        page.get_by_label("Text", exact=True).fill("A dull pleasure")
        page.wait_for_function("() => document.querySelectorAll('article:last-child .unit').length === 3")
        page.wait_for_function(SETTLED)
        units = page.locator(".place-maps article").last.locator(".unit")
        labels = units.evaluate_all("all => all.map((one) => one.ariaLabel)")
        e = raison.explain(models()["words"], "A dull pleasure", progress=False)
        assert [label.partition(": ")[2] for label in labels] == numbers(e)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
        assert "text=A+dull+pleasure" in page.url


def test_the_token_comes_from_the_address_and_leaves_it(browser: "Browser") -> None:
    served = Served(models(), Access(token="t" * 16))
    with opened(browser, served, f"#token={'t' * 16}") as page:
        page.wait_for_function(SETTLED)
        assert "token" not in page.url
        assert page.locator(".place-maps article .unit").count() == len(TEXT.split())


def test_an_edit_takes_back_what_is_being_explained(browser: "Browser") -> None:
    served = Served({"words": models()["words"]})
    with opened(browser, served) as page:
        page.wait_for_function(SETTLED)
        area = page.get_by_label("Text", exact=True)
        area.press("End")
        page.keyboard.type(" and more of it", delay=60)
        page.wait_for_function("() => document.querySelectorAll('article:last-child .unit').length === 9")
        page.wait_for_function(SETTLED)
        assert page.locator(".warning").count() == 0


@pytest.mark.parametrize("path", ["/", "/assets/component.js"])
def test_no_other_site_can_show_or_read_the_page(browser: "Browser", path: str) -> None:
    with listening(Served(models())) as port:
        page = browser.new_context().new_page()
        page.goto(f"http://localhost:{port}/healthz")
        script = """async (address) => {
            try { return (await fetch(address)).status; } catch { return "refused"; }
        }"""
        # Another origin of the same machine: its port is the same, its name is not.
        assert page.evaluate(script, f"http://127.0.0.1:{port}{path}") == "refused"
        page.context.close()
