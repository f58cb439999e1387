"""Where processes that share work look for modules."""

import sys
from pathlib import Path

import pytest

from raison.jobs.engine import Job
from raison.jobs.workers import in_processes

SCRIPT = """
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from raison.jobs.engine import Job


@dataclass(frozen=True)
class Touched:
    folder: Path

    @contextmanager
    def opened(self, shard):
        yield self.jobs

    def jobs(self):
        path = self.folder / "done"
        return [Job("only", "", lambda told: path.touch(), path.exists)]
"""


@pytest.mark.parametrize("entry", ["", "scripts"])
def test_workers_import_what_the_caller_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    """Modules of the caller's script, of the current folder only if the caller imports from there."""
    scripts, here = tmp_path / "scripts", tmp_path / "here"
    for folder in (scripts, here):
        folder.mkdir()
    (scripts / "caller_script.py").write_text(SCRIPT)
    (here / "pickle.py").write_text("raise SystemExit('of the current folder')")
    monkeypatch.chdir(here if entry else scripts)
    monkeypatch.setattr(sys, "path", [str(scripts) if entry else "", *filter(None, sys.path)])
    monkeypatch.delitem(sys.modules, "caller_script", raising=False)
    work = __import__("caller_script").Touched(tmp_path)
    in_processes(work, work.jobs(), 1, progress=False)
    assert isinstance(work.jobs()[0], Job)
    assert (tmp_path / "done").exists()
