"""Whole files beside other writers, and after a failure."""

import threading
from pathlib import Path

import pytest

from raison.core.errors import DataError
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


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    others, folder = tmp_path / "others", tmp_path / "run"
    others.mkdir()
    folder.mkdir()
    (others / "kept.txt").write_text("of another person")
    (folder / f".a.txt.1.0{PART}").symlink_to(others, target_is_directory=True)
    (folder / "loop").symlink_to("loop")
    disk.sweep(folder)
    disk.remove(folder / "loop")
    assert not list(folder.iterdir())
    assert (others / "kept.txt").read_text() == "of another person"


def test_only_parts_of_this_package_are_swept(tmp_path: Path) -> None:
    mine = tmp_path / "rows" / f".a.txt.12.0{PART}"
    mine.mkdir(parents=True)
    (mine / "half.txt").touch()
    kept = [tmp_path / name for name in (f"download{PART}", f".a.txt{PART}", f"a.txt.12.0{PART}")]
    for path in kept:
        path.touch()
    disk.sweep(tmp_path)
    assert not mine.exists()
    assert all(path.exists() for path in kept)


def test_nothing_is_written_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "of_another_person.txt"
    target.write_text("kept\n")
    monkeypatch.setattr(disk, "_part_of", lambda name: f".{name}.1.0{PART}")
    for name in ("lines.jsonl", f".whole.txt.1.0{PART}"):
        (tmp_path / name).symlink_to(target)
    with pytest.raises(DataError, match=r"lines.jsonl: it is a link\. Put a copy"):
        disk.append(tmp_path / "lines.jsonl", b"{}\n")
    write_whole(tmp_path / "whole.txt", "new")
    assert (tmp_path / "whole.txt").read_text() == "new"
    assert target.read_text() == "kept\n"
