"""Records of files' digests, beside other processes that write theirs."""

import os
from pathlib import Path

import pytest

from raison.jobs import disk
from raison.models.loading.ready_made import digests


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    digests.record(tmp_path)
    return tmp_path


def test_a_record_that_another_process_is_writing_is_no_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(part: Path, path: Path) -> None:
        seen.append(digests.changed(folder, {}))
        os.replace(part, path)

    monkeypatch.setattr(disk, "_place", look)
    digests.record(folder)
    assert seen == [""]


def test_neither_is_what_a_killed_process_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_place", lambda *_: (_ for _ in ()).throw(SystemExit))
    monkeypatch.setattr(os, "unlink", lambda *_: None)
    with pytest.raises(SystemExit):
        digests.record(folder)
    assert len(list(folder.iterdir())) == 3
    assert digests.changed(folder, {}) == ""


def test_another_file_is_a_change(folder: Path) -> None:
    (folder / "weights.bin").write_bytes(b"")
    assert digests.changed(folder, {}) == "weights.bin was not among the files that were fetched"
