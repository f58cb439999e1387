"""Rehearsals of the paper's study files (studies/rehearse.py): two of them, and whether all are as they were."""

import hashlib
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STUDIES = ROOT / "studies"
QUICK = ("pi_figures_2_6_7", "ivra_table_6")
"""The comparison that takes least, and a study of trainings."""
_LINE = re.compile(r"\| `(\w+)` \| `(\w+)` \| (\d+) \| .* \| (.*) \|")


def _lines(table: Path) -> dict[str, tuple[str, int, str]]:
    """A table's digests, numbers of records and outcomes."""
    found = map(_LINE.fullmatch, table.read_text(encoding="utf-8").splitlines())
    return {line[1]: (line[2], int(line[3]), line[4]) for line in found if line}


def _digest(study: str) -> str:
    return hashlib.sha256((STUDIES / study / "paper.toml").read_bytes()).hexdigest()[:12]


@pytest.mark.parametrize("study", sorted(path.parent.name for path in STUDIES.glob("*/paper.toml")))
def test_every_file_ran_whole_as_it_is(study: str) -> None:
    """After a change of the file: python studies/rehearse.py STUDY."""
    digest, records, outcome = _lines(STUDIES / "rehearsed.md")[study]
    assert digest == _digest(study)
    assert records > 0
    assert outcome == "runs whole"


def test_files_run_whole_on_stand_ins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (ROOT / "../shared/data").is_dir():
        pytest.skip("the labelled data sets are not beside the checkout (../shared/data)")
    pytest.importorskip("datasets")
    # What it sets itself is taken back, too.
    monkeypatch.setenv("RAISON_DATA", str(ROOT.parent / "shared/data"))
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("torch.set_num_threads", lambda _: None)
    monkeypatch.syspath_prepend(str(STUDIES))
    monkeypatch.setattr(sys, "argv", ["rehearse.py", *QUICK, "--out", str(tmp_path)])
    code = runpy.run_path(str(STUDIES / "rehearse.py"))["main"]()
    assert code == 0, capsys.readouterr().out
    found = _lines(tmp_path / "rehearsed.md")
    assert {study: line[0] for study, line in found.items()} == {study: _digest(study) for study in QUICK}
    for study, (_, records, outcome) in found.items():
        assert records > 0
        assert outcome == "runs whole"
        assert (tmp_path / f"{study}-0/runs/whole/report/index.html").is_file()
    assert "9 not judged" in (tmp_path / "rehearsed.md").read_text(encoding="utf-8")
