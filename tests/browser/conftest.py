"""A real browser: Chromium, driven by Playwright. Without one these tests are skipped, and say what is missing."""

import importlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import raison
from raison.core.model import LanguageModel
from raison.web.server.served import ServedModels
from tests.browser.stage import TEXT, Stage, open_stage
from tests.browser.windows import window
from tests.browser.written import REFUSED, writer
from tests.integration.test_serve_live import listening
from tests.tiny import build

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome")
WEIGHTS = {"modest": 0.5, "pleasure": 2.0, "ease": 1.0, "dull": -3.0, "👍🏽": 1.5, "ممل": -2.0}
Opened = Callable[..., Stage]
ServedPage = Callable[..., "Page"]


def by_words(texts: list[str]) -> np.ndarray:
    """A probability from the sum of the words' weights."""
    sums = np.array([sum(WEIGHTS.get(word, 0.0) for word in text.split()) for text in texts])
    positive = 1 / (1 + np.exp(-sums))
    return np.stack([1 - positive, positive], axis=1)


@cache
def models() -> dict[str, LanguageModel]:
    """A transformer, for which a quick method works, and a function, for which none does."""
    words = raison.load(by_words, classes=["negative", "positive"])
    return {"tiny": raison.load(*build("bert", ("negative", "positive"))), "words": words}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    # Python 3.11 can parse no source after Playwright's greenlets have run: what pytest imports in the end comes first.
    importlib.import_module("hypothesis.internal.observability")
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    found = os.environ.get("RAISON_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium: apt-get install chromium, or name one in RAISON_CHROMIUM")
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=options)
        yield opened
        opened.close()


@pytest.fixture
def opened(browser: "Browser") -> Iterator[Opened]:
    """Opens the component on a page; in the end no page may have complained."""
    problems: list[str] = []
    with ExitStack() as windows:

        def open_(text: Any = TEXT, values: dict[str, Any] | None = None, hash: str = "", **options: Any) -> Stage:
            offered = {"writer": writer()} if (values or {}).get("face") == "write" else models()
            page = windows.enter_context(window(browser, problems, **options))
            return open_stage(page, offered, {"text": text, **(values or {})}, hash)

        yield open_
    assert not problems


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a server of a model that writes and of one that predicts, the same for all tests of a file."""
    with listening(ServedModels({"writer": writer(), "words": models()["words"]})) as found:
        yield found


@pytest.fixture
def served(browser: "Browser", port: int) -> Iterator[ServedPage]:
    """Opens a page of the server; in the end none may have complained of more than what was refused."""
    problems: list[str] = []
    with ExitStack() as windows:

        def open_(rest: str = "", **options: Any) -> "Page":
            page = windows.enter_context(window(browser, problems, **options))
            page.goto(f"http://127.0.0.1:{port}/{rest}")
            return page

        yield open_
    assert not [one for one in problems if one != REFUSED]
