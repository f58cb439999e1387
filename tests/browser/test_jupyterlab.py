"""The widget in a real JupyterLab without a window: maps, edits, what a cell sees, Stop, and both themes."""

import json
import os
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
from tests.browser.test_notebook import KERNEL, answers

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CELLS = (
    """\
import time
import numpy as np
import raison

def by_words(texts):
    time.sleep(0.05 * any("slow" in text for text in texts))
    sums = np.array([text.count("good") - text.count("bad") for text in texts])
    yes = 1 / (1 + np.exp(-sums))
    return np.stack([1 - yes, yes], axis=1)

model = raison.load(by_words, classes=["no", "yes"], batch=1)
w = raison.Widget(model, "a good film", method="occlusion")
w""",
    'print(w.explanation.text, "is", w.explanation.prediction)',
    'w.text = "set in a cell"',
)

pytestmark = pytest.mark.skipif(
    find_spec("jupyterlab") is None, reason="no JupyterLab: pip install jupyterlab ipykernel"
)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a JupyterLab with the notebook; its theme follows the browser's, and its files lie in this test's folder."""
    empty = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**empty, "source": cell, "id": f"c{number}"} for number, cell in enumerate(CELLS)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "n.ipynb").write_text(json.dumps(notebook))
    settings = tmp_path / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "themes.jupyterlab-settings").write_text('{"adaptive-theme": true}')
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    with closing(running.listening(Access(port=0))) as held:
        port = held.getsockname()[1]
    options = ("--no-browser", "--allow-root", "--IdentityProvider.token=", f"--ServerApp.port={port}")
    call = [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={tmp_path}"]
    own = {"HOME": str(tmp_path), "JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings")}
    with subprocess.Popen(call, env={**os.environ, **own}, cwd=tmp_path) as lab:
        try:
            end = time.monotonic() + KERNEL / 1000
            while not answers(port):
                assert time.monotonic() < end
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/lab/tree/n.ipynb"
        finally:
            lab.terminate()


def run_cell(page: "Page", number: int) -> None:
    """Run a cell, from 1 on."""
    page.locator(".jp-CodeCell").nth(number - 1).locator(".jp-InputArea-editor").click()
    page.keyboard.press("Control+Enter")


def test_the_widget_in_jupyterlab(browser: "Browser", address: str) -> None:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.set_default_timeout(KERNEL)
    page.goto(address)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    run_cell(page, 1)
    page.locator("article .unit").first.wait_for()
    assert page.locator("article .unit").all_inner_texts() == ["a", "good", "film"]
    # What is typed is explained, and a cell sees it.
    page.get_by_label("Text", exact=True).fill("a bad film")
    page.get_by_role("article", name="Now").wait_for()
    assert "Predicted no" in page.get_by_role("article", name="Now").inner_text()
    run_cell(page, 2)
    page.get_by_text("a bad film is no").wait_for()
    # What a cell sets is shown.
    run_cell(page, 3)
    page.get_by_role("article", name="Now").get_by_role("button", name="cell:").wait_for()
    assert page.get_by_label("Text", exact=True).input_value() == "set in a cell"
    # Long work ends when it is stopped, and the kernel hears that.
    page.get_by_label("Method").select_option("kernel_shap")
    page.get_by_label("Text", exact=True).fill("a slow film that is good and long and winding")
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped. What was begun is not finished.").wait_for()
    page.get_by_label("Text", exact=True).fill("a good end")
    page.get_by_role("article", name="Now").get_by_role("button", name="end:").wait_for()
    for theme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(22, 25, 31)")):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.wait_for_function(
            "(ground) => getComputedStyle(document.querySelector('.raison')).backgroundColor === ground", arg=ground
        )
    page.context.close()
    assert not problems
