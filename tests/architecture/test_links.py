"""Every link of a committed page leads to a committed file."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def committed() -> set[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone")
    files = {ROOT / line for line in listed.stdout.splitlines()}
    return files | {folder for file in files for folder in file.parents}


def test_links_lead_to_committed_files() -> None:
    there = committed()
    pages = [path for path in there if path.suffix == ".md" and path.is_file()]
    assert len(pages) > 20
    for page in pages:
        # Fragments become part of the changelog, at the root.
        place = ROOT if page.parent.name == "changelog.d" else page.parent
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            if "://" not in link and not link.startswith("mailto:"):
                assert (place / link).resolve() in there, f"{page.relative_to(ROOT)}: {link}"
