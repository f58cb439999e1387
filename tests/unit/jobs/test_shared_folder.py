"""The folder of a process and of those that it starts."""

from pathlib import Path

import pytest

from raison.jobs import shared_folder


def test_a_started_process_has_the_folder_of_the_one_that_started_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(shared_folder.FOLDER, str(tmp_path))
    assert shared_folder.folder() == tmp_path
    assert shared_folder.for_started() == {shared_folder.FOLDER: str(tmp_path)}


def test_what_outlives_that_process_has_one_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(shared_folder.FOLDER, str(tmp_path / "gone"))
    assert shared_folder.folder().is_dir()
    assert shared_folder.folder() == shared_folder.folder() != tmp_path / "gone"
