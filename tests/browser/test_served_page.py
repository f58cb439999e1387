"""The page of `raison serve`: the component over HTTP, under the server's own policy."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

import raison
from raison.web.server.served import ServedModels
from raison.web.server.settings import Access
from tests.browser.conftest import models
from tests.browser.stage import numbers
from tests.browser.windows import window
from tests.browser.written import writer
from tests.integration.test_serve_live import listening

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TEXT = "A modest pleasure with ease"
SMALL = {"width": 360, "height": 700}
SETTLED = """() => {
    const maps = document.querySelector('.place-maps');
    return maps?.querySelector('article') && !maps.hasAttribute('aria-busy');
}"""


@pytest.fixture(scope="module")
def port() -> "Iterator[int]":
    """Of a server of both models, for the tests that ask for no other."""
    with listening(ServedModels(models())) as found:
        yield found


@contextmanager
def opened(browser: "Browser", served: "ServedModels | int", rest: str = "") -> "Iterator[Page]":
    """The page of a server, or of the one at a port, in the end without a complaint in its console."""
    problems: list[str] = []
    with ExitStack() as stack:
        port = served if isinstance(served, int) else stack.enter_context(listening(served))
        page = stack.enter_context(window(browser, problems, viewport=SMALL))
        page.goto(f"http://127.0.0.1:{port}/{rest}")
        yield page
    assert not problems


def test_a_text_is_explained_and_again_when_it_is_edited(browser: "Browser", port: int) -> None:
    with opened(browser, port) as page:
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
        page.get_by_role("button", name="Check this one").click()
        page.get_by_text("Random control").wait_for()
        checked = page.get_by_role("region", name="Trust").inner_text()
        assert "without “dull”" in checked
        assert "Completeness gap" in checked


def test_the_token_comes_from_the_address_and_leaves_it(browser: "Browser") -> None:
    served = ServedModels({"words": models()["words"]}, Access(token="t" * 16))
    with opened(browser, served, f"#token={'t' * 16}") as page:
        page.wait_for_function(SETTLED)
        assert "token" not in page.url
        assert page.locator(".place-maps article .unit").count() == len(TEXT.split())


def test_a_reload_keeps_the_token_and_a_link_the_map(browser: "Browser") -> None:
    served = ServedModels({"words": models()["words"]}, Access(token="t" * 16))
    rest = f"#token={'t' * 16}&text=a+dull+pleasure&method=occlusion&target=negative&with=nothing"
    with opened(browser, served, rest) as page:
        for _ in range(2):
            page.wait_for_function(SETTLED)
            units = page.locator(".place-maps article").last.locator(".unit")
            labels = units.evaluate_all("all => all.map((one) => one.ariaLabel)")
            e = raison.explain(models()["words"], "a dull pleasure", "occlusion", target="negative", progress=False)
            assert [label.partition(": ")[2] for label in labels] == numbers(e)
            assert "token" not in page.url
            page.reload()


def test_a_link_to_an_absent_model_is_told_and_the_page_goes_on(browser: "Browser", port: int) -> None:
    with opened(browser, port, "#text=a+dull+pleasure&model=other") as page:
        warning = page.locator(".warning")
        warning.wait_for()
        assert warning.inner_text() == "The link names the model 'other', which is not among those here."
        page.get_by_label("Text", exact=True).fill("a pleasure")
        page.wait_for_function(SETTLED)
        assert page.locator(".place-maps article").last.locator(".unit").count() == 2
        # What is still on its way does not take the line away.
        page.get_by_label("Text", exact=True).fill("a dull pleasure")
        page.evaluate("() => { location.hash = 'text=a+film&model=other'; }")
        warning.wait_for()
        page.wait_for_timeout(500)
        assert warning.count() == 1
        assert page.locator("article").count() == 0


def test_a_link_without_truncate_cuts_nothing_off(browser: "Browser") -> None:
    served = ServedModels({"tiny": models()["tiny"]})
    with opened(browser, served, f"#text={'long+' * 50}&truncate=true&method=occlusion") as page:
        page.wait_for_function(SETTLED)
        assert "truncate=true" in page.url
        assert page.get_by_label("Long texts").count() == 1
        page.evaluate("() => { location.hash = 'text=a+film'; }")
        page.wait_for_function("() => document.querySelectorAll('article:last-child .unit').length === 2")
        assert "truncate" not in page.url
        assert page.get_by_label("Long texts").count() == 0


def test_an_edit_takes_back_what_is_being_explained(browser: "Browser") -> None:
    def slowly(texts: list[str]) -> list[list[float]]:
        if any("slow" in text for text in texts):
            time.sleep(0.4)
        return [[0.25, 0.75] for _ in texts]

    served = ServedModels({"m": raison.load(slowly, classes=["no", "yes"])})
    with opened(browser, served, "#text=slow&method=shapley_sampling") as page:
        page.wait_for_function("() => document.querySelector('[aria-busy]')")
        page.get_by_label("Text", exact=True).fill("quick now")
        page.wait_for_function(SETTLED)
        assert page.locator("article .unit").all_inner_texts() == ["quick", "now"]
        assert page.locator(".warning").count() == 0
        assert re.search(r'raison_withdrawn_total\{model="m"\} [1-9]', served.counts.exposition())


def test_no_other_site_can_show_or_read_the_page(browser: "Browser", port: int) -> None:
    script = """async (address) => {
        try { return (await fetch(address)).status; } catch { return "refused"; }
    }"""
    with window(browser, [], viewport=SMALL) as page:
        page.goto(f"http://localhost:{port}/healthz")
        for path in ("/", "/assets/component.js"):
            # Another origin of the same machine: its port is the same, its name is not.
            assert page.evaluate(script, f"http://127.0.0.1:{port}{path}") == "refused"


def test_steps_back_are_heard_wherever_the_focus_is(browser: "Browser", port: int) -> None:
    with opened(browser, port) as page:
        page.wait_for_function(SETTLED)
        page.get_by_label("Model").select_option("words")
        page.wait_for_function(SETTLED)
        count = page.locator("article").count()
        page.locator("article .unit").nth(1).focus()
        page.keyboard.press("Delete")
        page.wait_for_function(f"() => document.querySelectorAll('article').length === {count + 1}")
        page.wait_for_function(SETTLED)
        page.evaluate("() => document.activeElement.blur()")
        page.keyboard.press("Control+z")
        page.wait_for_function(f"() => document.querySelectorAll('article').length === {count}")
        assert page.get_by_label("Text", exact=True).input_value() == TEXT


def test_a_server_that_is_gone_is_named_and_nothing_old_is_taken_away(browser: "Browser") -> None:
    with window(browser, [], viewport=SMALL) as page:
        with listening(ServedModels({"words": models()["words"]})) as port:
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_function(SETTLED)
            assert page.get_by_text("Take away").count() == 1
        page.get_by_label("Text", exact=True).fill("A dull pleasure")
        page.get_by_text("The server does not answer. Try again once it runs.").wait_for()
        assert page.locator("article").count() == 0
        assert page.get_by_text("Take away").count() == 0


def test_the_history_names_what_differs(browser: "Browser", port: int) -> None:
    with opened(browser, port) as page:
        page.wait_for_function(SETTLED)
        first = page.get_by_label("Model").input_value()
        page.get_by_label("Model").select_option("words")
        page.get_by_text("History: 2").click()
        names = page.locator("details ol button").all_inner_texts()
        assert first in names[0]
        assert "words" in names[1]
        assert len(set(names)) == 2


def aborted(page: "Page", path: str) -> list[str]:
    """The requests of a path that the page takes back; the server never gets them."""
    page.route(f"**/{path}", lambda route: None)
    taken_back: list[str] = []
    page.on("requestfailed", lambda request: taken_back.append(request.url))
    return taken_back


def test_an_edit_takes_back_a_check(browser: "Browser", port: int) -> None:
    with opened(browser, port, "#model=words&method=occlusion&text=a+dull+pleasure") as page:
        page.get_by_role("button", name="Check this one").wait_for()
        taken_back = aborted(page, "api/check")
        page.get_by_role("button", name="Check this one").click()
        page.get_by_text("Testing this text.").wait_for()
        page.get_by_label("Text", exact=True).fill("a pleasure")
        page.wait_for_function("() => document.querySelectorAll('article:last-child .unit').length === 2")
        page.wait_for_function(SETTLED)
        assert [url.rpartition("/")[2] for url in taken_back] == ["check"]
        assert page.locator(".warning").count() == 0


def test_who_leaves_a_face_takes_back_what_it_asked(browser: "Browser") -> None:
    served = ServedModels({**models(), "writer": writer()})
    with opened(browser, served) as page:
        page.get_by_role("link", name="Written answers").click()
        page.get_by_role("button", name="Explain").wait_for()
        taken_back = aborted(page, "api/predict")
        page.get_by_role("button", name="Explain").click()
        page.get_by_text("The model writes.").wait_for()
        page.get_by_role("link", name="Predictions").click()
        page.wait_for_function(SETTLED)
        assert [url.rpartition("/")[2] for url in taken_back] == ["predict"]
        assert "face=write" not in page.url


def test_a_token_may_be_added_to_the_address_of_an_open_page(browser: "Browser") -> None:
    served = ServedModels({"words": models()["words"]}, Access(token="t" * 16))
    with listening(served) as port, window(browser, [], viewport=SMALL) as page:
        page.goto(f"http://127.0.0.1:{port}/#token=wrong")
        page.get_by_text("This server asks for its token: add #token=TOKEN to the address of this page.").wait_for()
        page.goto(f"http://127.0.0.1:{port}/#token={'t' * 16}")
        page.wait_for_function(SETTLED)
        assert "token" not in page.url


def test_what_could_not_be_sent_stays_in_the_address_and_is_asked_again(browser: "Browser", port: int) -> None:
    with opened(browser, port, "#model=words&method=occlusion&text=good") as page:
        page.wait_for_function(SETTLED)
        page.get_by_label("Text", exact=True).fill("")
        page.get_by_text("Type or paste a text.").wait_for()
        assert "text=&" in page.url
    with window(browser, [], viewport=SMALL) as page:
        page.goto(f"http://127.0.0.1:{port}/#model=words&method=occlusion&text=good")
        page.wait_for_function(SETTLED)
        page.route("**/api/explain", lambda route: route.abort())
        page.get_by_label("Text", exact=True).fill("a dull pleasure")
        page.get_by_text("The server does not answer. Try again once it runs.").wait_for()
        assert "text=a+dull+pleasure" in page.url
        page.unroute("**/api/explain")
        page.get_by_role("button", name="Explain again").click()
        page.wait_for_function("() => document.querySelectorAll('article:last-child .unit').length === 3")
        page.wait_for_function(SETTLED)


def test_code_shows_overrides_of_the_direction_as_what_they_are(browser: "Browser", port: int) -> None:
    with opened(browser, port, "#model=words&method=occlusion&text=a+%E2%80%AEgood+one") as page:
        page.wait_for_function(SETTLED)
        page.get_by_text("Take away").click()
        code = page.get_by_role("region", name="Code").inner_text()
        assert code.startswith('raison.explain(model, "a \\u202egood one", ')


def test_a_word_of_a_pair_opens_while_something_else_changes(browser: "Browser") -> None:
    pairs = ServedModels(
        {"pairs": raison.load(lambda pairs: [[0.2, 0.8]] * len(pairs), classes=["n", "y"], pairs=True)}
    )
    with opened(browser, pairs, "#method=occlusion&text=so+good&text=so+bad") as page:
        page.wait_for_function(SETTLED)
        page.route("**/api/explain", lambda route: None)
        page.get_by_label("Quantity").select_option("log_odds")
        page.wait_for_function("() => document.querySelector('.place-maps').hasAttribute('aria-busy')")
        page.locator("article .unit").nth(1).click()
        assert page.locator(".word-bar").count() == 1
