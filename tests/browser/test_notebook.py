"""The widget and the table in a real notebook: marimo without a window, whose kernel answers."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from raison.web.server import running
from raison.web.server.settings import Access

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NOTEBOOK = Path(__file__).with_name("notebook.py")
KERNEL = 120_000
"""Milliseconds until a kernel on a busy machine has imported everything and answered."""

pytestmark = pytest.mark.skipif(find_spec("marimo") is None, reason="no marimo: pip install marimo")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a marimo that runs the notebook, and keeps its own files in a folder of this test."""
    with closing(running.listening(Access(port=0))) as held:
        port = held.getsockname()[1]
    call = [sys.executable, "-m", "marimo", "run", str(NOTEBOOK), "--headless", "--no-token", "--port", str(port)]
    with subprocess.Popen(call, env={**os.environ, "HOME": str(tmp_path)}, cwd=tmp_path) as notebook:
        try:
            end = time.monotonic() + KERNEL / 1000
            while not answers(port):
                assert time.monotonic() < end
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            notebook.terminate()


def answers(port: int) -> bool:
    """Whether something listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_the_widget_and_the_table_ask_the_kernel(browser: "Browser", address: str) -> None:
    page = browser.new_context().new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.set_default_timeout(KERNEL)
    page.goto(address)
    page.locator("article .unit").first.wait_for()
    assert page.locator("article .unit").all_inner_texts() == ["a", "good", "film"]
    page.get_by_label("Text", exact=True).fill("a bad film")
    page.get_by_role("article", name="Now").wait_for()
    assert "Predicted no" in page.get_by_role("article", name="Now").inner_text()
    page.get_by_role("button", name="Check this one").click()
    page.get_by_text("Random control").wait_for()
    page.get_by_role("button", name="good and bad").click()
    page.get_by_role("article", name="Text 3").wait_for()
    page.get_by_label("With the word").fill("bad")
    page.get_by_text("2 of 6 texts").wait_for()
    page.context.close()
    assert not problems
