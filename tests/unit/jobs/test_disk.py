"""Whole files beside other writers, and after a failure."""

import threading
from pathlib import Path

import pytest

from raison.jobs import disk
from raison.jobs.disk import PART, whole_file, whole_files, write_whole


def parts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if PART in path.name]


def test_two_threads_write_one_file(tmp_path: Path) -> None:
    path, failed = tmp_path / "a.json", list[BaseException]()

    def write(letter: str) -> None:
        try:
            for _ in range(50):
                write_whole(path, letter * 1000)
        except BaseException as error:  # noqa: BLE001 - told in the main thread
            failed.append(error)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert path.read_text() in ("a" * 1000, "b" * 1000)
    assert not parts(tmp_path)


@pytest.mark.parametrize("error", [ValueError("of a library"), KeyboardInterrupt()])
def test_a_failure_leaves_no_part(tmp_path: Path, error: BaseException) -> None:
    (tmp_path / "a.txt").write_text("before")

    def write_one() -> None:
        with whole_file(tmp_path / "a.txt") as part:
            part.write_text("half")
            raise error

    def write_several() -> None:
        with whole_files(tmp_path) as folder:
            (folder / "a.txt").write_text("half")
            raise error

    for write in (write_one, write_several):
        with pytest.raises(type(error)):
            write()
    assert not parts(tmp_path)
    assert (tmp_path / "a.txt").read_text() == "before"


def test_what_a_killed_process_left_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_part_of", lambda name: f"{name}.1.0{PART}")
    (tmp_path / f"files.1.0{PART}").mkdir()
    (tmp_path / f"files.1.0{PART}" / "old.txt").write_text("of another run")
    with whole_files(tmp_path) as folder:
        (folder / "a.txt").write_text("whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt"]
