"""Pages of the browser that several tests use one after another: to open a new one takes seconds."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.patience import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Error, Page

FREE: "dict[str, list[Page]]" = defaultdict(list)
"""Empty pages by the options of their window; of a test that failed none comes back."""


@contextmanager
def window(browser: "Browser", problems: list[str], **options: Any) -> "Iterator[Page]":
    """An empty page in a window of these options, to which whatever it complains of is added.

    It keeps the caches and the session storage of the addresses that it showed.
    """
    free = FREE[repr(sorted(options.items()))]
    page = free.pop() if free else browser.new_context(**options).new_page()
    page.set_default_timeout(1000 * PATIENCE)

    def said(message: "ConsoleMessage") -> None:
        if message.type in ("error", "warning"):
            problems.append(message.text)

    def raised(error: "Error") -> None:
        problems.append(str(error))

    page.on("console", said)
    page.on("pageerror", raised)
    yield page
    for other in page.context.pages:
        if other is not page:
            other.close()
    page.unroute_all(behavior="ignoreErrors")
    page.mouse.move(0, 0)
    # What is on its way is broken off now, which is no complaint of the page's.
    page.remove_listener("console", said)
    page.remove_listener("pageerror", raised)
    page.goto("about:blank")
    free.append(page)
