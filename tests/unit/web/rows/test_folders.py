"""Folders of runs: odd entries hide nothing else."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

import raison
from raison.core.errors import DataError
from raison.web.rows.folders import below, inside, state_of
from raison.web.rows.lines import AbsentError, RowKey
from raison.web.server.runs.folders import RunFolders
from tests.tiny import TINY

TEXTS = ("a dull plot", "not good")


def compared(out: Path) -> None:
    raison.compare(raison.load(*TINY["bert"]()), list(TEXTS), "occlusion", "comprehensiveness", out=out, progress=False)


def test_names_that_no_answer_could_state_are_left_out(tmp_path: Path) -> None:
    for name in (b"good", b"caf\xe9"):
        folder = os.fsencode(tmp_path) + b"/" + name
        os.mkdir(folder)
        Path(os.fsdecode(folder), "run.json").touch()
    assert [name for name, _ in below(tmp_path, {"run.json"})] == ["good"]


def test_links_without_a_file_and_in_circles(tmp_path: Path) -> None:
    (tmp_path / ".#lock").symlink_to("nobody@nowhere.1")
    (tmp_path / "loop").symlink_to("loop")
    assert state_of([tmp_path / ".#lock"]) == ((str(tmp_path / ".#lock"), 0, 0),)
    assert inside(tmp_path, tmp_path.resolve(), [tmp_path / ".#lock"])
    assert not inside(tmp_path, tmp_path.resolve(), [tmp_path / "loop"])


def test_a_run_that_is_deleted_while_it_is_read_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared(tmp_path / "run")
    shown = RunFolders(tmp_path)
    assert [run.run for run in shown.all()] == ["run"]

    def gone(folder: Path) -> None:
        raise FileNotFoundError(2, "gone", str(folder / "run.json"))

    monkeypatch.setattr("raison.web.server.runs.folders._state", gone)
    assert shown.all() == []
    with pytest.raises(AbsentError, match="deleted while it was read"):
        shown.lines(RowKey("run", "occlusion", 0))


def test_a_run_that_cannot_be_read_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_bytes(b"\x00\x1b[2J")
    shown = RunFolders(tmp_path)
    with caplog.at_level("WARNING", "raison.serve"):
        assert shown.all() == shown.all() == []
    [told] = caplog.messages
    assert told.startswith("the run broken is not listed: ")
    assert "\x1b" not in told


def test_errors_do_not_say_where_the_folder_of_runs_lies(tmp_path: Path) -> None:
    compared(tmp_path / "run")
    shown, place = RunFolders(tmp_path), RowKey("run", "occlusion", 0)
    path = tmp_path / "run" / "explanations.jsonl"
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text(first.replace("a dull plot", "a dull plod") + "".join(others))
    with pytest.raises(DataError, match="run/explanations.jsonl, line 1: the record was changed") as caught:
        shown.explanation(place, 0)
    assert str(tmp_path) not in str(caught.value)


def test_a_request_looks_only_at_the_files_of_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def noted(folder: Path, root: Path, files: Iterable[Path]) -> bool:
        looked.append(folder.name)
        return inside(folder, root, files)

    for name in ("one", "two", "other"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").write_text("{}")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "runs" / "other" / "records.jsonl").symlink_to(tmp_path / "secret")
    monkeypatch.setattr("raison.web.server.runs.folders.inside", noted)
    shown = RunFolders(tmp_path / "runs")
    with pytest.raises(DataError):
        shown.identity("two")
    assert looked == ["two"]
    for name in ("other", "../runs/two", "missing"):
        with pytest.raises(AbsentError, match="unknown run") as caught:
            shown.identity(name)
        assert str(caught.value).endswith("Known: one, two.")
