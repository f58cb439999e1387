"""A page runs its own script, told by its hash, and no other: asked of a real browser, where one is installed."""

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from raison.report.explanations.html import page
from raison.report.style.markup import Markup, document, escaped
from tests.patience import PATIENCE
from tests.unit.core.settings.test_reading import written
from tests.unit.report.explanations.test_html import explain

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NASTY = "</script><!--<script> \u2028 & ]]>"
PAGES = {
    "explanation": page(explain("a modest pleasure")),
    "output": page(written()),
    "several": page([explain("a modest pleasure"), explain(NASTY)]),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_names_the_hash_of_the_only_script(name: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', PAGES[name])
    assert policy
    scripts = re.findall(r"<script>(.*?)</script>", PAGES[name], re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy[1]
    assert policy[1].startswith("default-src 'none';")


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_names_the_hash_of_the_only_sheet(name: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', PAGES[name])
    assert policy
    assert "unsafe" not in policy[1]
    sheets = re.findall(r"<style>(.*?)</style>", PAGES[name], re.DOTALL)
    assert len(sheets) == 1
    digest = base64.b64encode(hashlib.sha256(sheets[0].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}';" in policy[1]
    body = PAGES[name].partition("<body>")[2]
    assert ' style="' not in body
    numbers = {int(number) for number in re.findall(r' data-style="(\d+)"', body)}
    assert numbers == set(range(len(numbers)))
    assert len(numbers) > 1
    assert all(f'html {4 * f"""[data-style="{number}"]"""} {{' in sheets[0] for number in numbers)


def test_a_style_that_is_none_of_ours_stays_out_of_the_sheet() -> None:
    body = Markup('<p style="color:red">a</p>{}').format(' style="}*{color:blue" style="color:green')
    shown = document("x", body, ())
    assert shown.count("color:red") == 1
    assert "blue" not in shown.partition("<body>")[0]
    assert "green" not in shown.partition("<body>")[0]


def test_a_page_without_a_script_allows_none() -> None:
    assert "script-src 'none';" in document("x", Markup(), ())


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
@pytest.mark.parametrize("name", PAGES)
def test_a_browser_runs_the_page_s_script_and_no_planted_one(name: str, tmp_path: Path) -> None:
    assert BROWSER
    planted = (
        "<script>document.title = 'planted'</script><img src=x onerror=\"document.title = 'planted'\">"
        '<a id="planted" href="javascript:document.title=\'planted\'">x</a></body>'
    )
    file = tmp_path / "page.html"
    file.write_text(PAGES[name].replace("</body>", planted), encoding="utf-8")
    done = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path}",
            "--dump-dom",
            str(file),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert "<title>planted" not in done.stdout
    # The script takes over the tooltips.
    assert "data-tip=" in done.stdout
    assert "data-tip=" not in PAGES[name]


def test_overrides_of_the_direction_are_seen() -> None:
    assert escaped("nice \u202eolleh\u202c, \u2066dull\u2069") == "nice \ufffdolleh\ufffd, \ufffddull\ufffd"
    # Marks that only place neighbouring punctuation stay: right-to-left texts need them.
    assert escaped("\u200fשלום\u200e") == "\u200fשלום\u200e"
