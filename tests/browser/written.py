"""A tiny model that writes behind a server, for the tests of its pages."""

import time
from functools import cache
from typing import TYPE_CHECKING, Any

import raison
from tests.patience import PATIENCE
from tests.tiny import CHAT_TEMPLATE, build_language_model

if TYPE_CHECKING:
    from playwright.sync_api import Page

REFUSED = "Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)"
"""What the browser itself says of a request that is refused."""


@cache
def writer() -> Any:
    """It has a chat template."""
    model, tokenizer = build_language_model("llama")
    tokenizer.chat_template = CHAT_TEMPLATE
    return raison.load(model, tokenizer)


def becomes(page: "Page", script: str, expected: object) -> None:
    """What a script finds on the page is this, soon."""
    end = time.monotonic() + PATIENCE
    while (found := page.evaluate(script)) != expected:
        assert time.monotonic() < end, (found, expected)
        page.wait_for_timeout(20)
