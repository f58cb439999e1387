"""The folder of a process and of those that it starts."""

from pathlib import Path

import pytest

from raison.jobs import shared


def test_a_started_process_has_the_folder_of_the_one_that_started_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(shared.FOLDER, str(tmp_path))
    assert shared.folder() == tmp_path
    assert shared.for_started() == {shared.FOLDER: str(tmp_path)}


def test_what_outlives_that_process_has_one_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(shared.FOLDER, str(tmp_path / "gone"))
    assert shared.folder().is_dir()
    assert shared.folder() == shared.folder() != tmp_path / "gone"
