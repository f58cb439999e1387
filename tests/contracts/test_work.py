"""Work that has a folder: of one kind only, by one process at a time, cut at any write and gone on with."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from raison.core.errors import DataError, RaisonError
from raison.jobs import disk
from raison.jobs.folder import COMPARISON, KINDS, STUDY, TRAININGS, WorkKind, working_in
from raison.studies.reports import write as write_report
from tests.conftest import ALL
from tests.folder_content import content, tree
from tests.interruptions import Cut, Interruption
from tests.work import WORKS, prepare

TRIED = {COMPARISON: 4}
"""Writes at which a kind that is quick is killed; another kind at one. At each with RAISON_ALL_FAMILIES."""


def moments(kind: WorkKind, seen: int, tried: int) -> list[int]:
    """The writes after which work is stopped, spread over all of them.

    Kinds begin at different ones, because these differ in their effect: one after the other, the kinds are stopped
    earlier or later in their work.
    """
    if ALL:
        return list(range(1, seen + 1))
    part = (KINDS.index(kind) + 0.5) / len(KINDS)
    return [1 + int((number + part) * seen / tried) for number in range(tried)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="module")
def made(place: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[WorkKind, tuple[Path, int]]:
    """One folder of each kind, and the number of its writes."""
    found = {}
    for number, (kind, work) in enumerate(WORKS.items()):
        folder, counter = tmp_path_factory.mktemp("whole") / f"kind-{number}", Interruption(0)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(disk, "os", counter.as_os())
            work(place, folder)
        found[kind] = folder, counter.seen
    return found


@pytest.fixture(scope="module")
def whole(made: dict[WorkKind, tuple[Path, int]]) -> dict[WorkKind, Path]:
    return {kind: folder for kind, (folder, _) in made.items()}


@pytest.fixture(scope="module")
def writes(made: dict[WorkKind, tuple[Path, int]]) -> dict[WorkKind, int]:
    return {kind: number for kind, (_, number) in made.items()}


def test_every_kind_has_its_work() -> None:
    assert set(WORKS) == set(KINDS)
    assert len({kind.name for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_folders_of_other_kinds_are_refused_and_untouched(
    place: Path, whole: dict[WorkKind, Path], kind: WorkKind, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.txt").write_text("mine")
    others = [folder for other, folder in whole.items() if other != kind]
    turn = KINDS.index(kind) % 5
    for folder in (*(others if ALL else others[turn::5]), tmp_path / "notes"):
        before, names = tree(folder), sorted(folder.rglob("*"))
        with pytest.raises(DataError, match="choose another folder|choose an empty") as caught:
            WORKS[kind](place, folder)
        assert "\n" not in str(caught.value)
        assert (tree(folder), sorted(folder.rglob("*"))) == (before, names)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_second_process_gets_one_line(place: Path, whole: dict[WorkKind, Path], kind: WorkKind) -> None:
    folder = whole[kind]
    with working_in(folder, kind):
        before = tree(folder)
        with pytest.raises(DataError, match="another process is working"):
            WORKS[kind](place, folder)
        assert tree(folder) == before
    assert ".lock" not in tree(folder)


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    kind = KINDS[0]
    script = (
        "import os, sys; from pathlib import Path; from raison.jobs.folder import KINDS, working_in\n"
        f"with working_in(Path({str(tmp_path / 'out')!r}), KINDS[0]): print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(DataError, match="another process is working"), working_in(tmp_path / "out", kind):
        pass
    process.kill()
    process.communicate()
    assert (tmp_path / "out" / ".lock").exists()
    with working_in(tmp_path / "out", kind):
        pass
    assert list((tmp_path / "out").iterdir()) == []


def test_shards_share_a_folder_and_nobody_else_does(tmp_path: Path) -> None:
    kind = KINDS[0]
    with working_in(tmp_path, kind, 1), working_in(tmp_path, kind, 2):
        for shard in (None, 1, 2):
            with pytest.raises(DataError, match="another process"), working_in(tmp_path, kind, shard):
                pass
    with working_in(tmp_path, kind):
        pass


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_killed_at_any_write_and_gone_on_with(
    place: Path,
    whole: dict[WorkKind, Path],
    writes: dict[WorkKind, int],
    kind: WorkKind,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half a line, half a file, before a sync, before a file is put in its place, before one is removed."""
    expected = content(whole[kind])
    for moment in moments(kind, writes[kind], TRIED.get(kind, 1)):
        out, cut = tmp_path / str(moment), Interruption(moment)
        monkeypatch.setattr(disk, "os", cut.as_os())
        with pytest.raises(Cut):
            WORKS[kind](place, out)
        monkeypatch.setattr(disk, "os", os)
        WORKS[kind](place, out)
        assert content(out) == expected, moment


class Full(Interruption):
    """A disk that is full from one moment on, and says so."""

    def stop(self) -> BaseException:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_one_line_and_the_work_goes_on(
    place: Path,
    whole: dict[WorkKind, Path],
    writes: dict[WorkKind, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = COMPARISON
    for moment in moments(kind, writes[kind], 2):
        out = tmp_path / str(moment)
        monkeypatch.setattr(disk, "os", Full(moment).as_os())
        with pytest.raises(RaisonError, match="no space left"):
            WORKS[kind](place, out)
        monkeypatch.setattr(disk, "os", os)
        WORKS[kind](place, out)
        assert content(out) == content(whole[kind]), moment


@pytest.mark.parametrize("name", ["agreement.json", "labels.json"])
def test_what_a_study_made_of_its_records_is_read_as_it_was_written(
    place: Path, whole: dict[WorkKind, Path], tmp_path: Path, name: str
) -> None:
    """One digit that changed is refused by the report; deleted, the file comes again."""
    out = shutil.copytree(whole[STUDY], tmp_path / "out")
    before = content(out)
    [path] = sorted(out.rglob(name))
    path.write_bytes(re.sub(rb"(\.\d*)\d", rb"\g<1>7", path.read_bytes(), count=1))
    with pytest.raises(DataError, match=f"{name}.*its checksum does not match.*--resume"):
        write_report(out, tmp_path / "page", False)
    path.unlink()
    WORKS[STUDY](place, out)
    assert content(out) == before


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_changed_first_file_is_refused_and_one_without_a_checksum_is_read_with_a_part_beside_it(
    place: Path, whole: dict[WorkKind, Path], kind: WorkKind
) -> None:
    folder = whole[kind]
    path, before = folder / kind.marker, content(folder)
    written = path.read_bytes()
    try:
        for name in (b"schema", b"crc32"):
            [(digit, at)] = [(found[1], found.start(1)) for found in re.finditer(rb'"%s": "?(\w)' % name, written)]
            path.write_bytes(written[:at] + (b"7" if digit != b"7" else b"8") + written[at + 1 :])
            kept = tree(folder)
            with pytest.raises(DataError, match=f"{kind.marker}.*its checksum does not match") as caught:
                WORKS[kind](place, folder)
            assert "\n" not in str(caught.value)
            assert tree(folder) == kept
        # What a killed process was writing does not stand in the way, either.
        (folder / f".{kind.marker}.123.0.part").write_text("{half")
        head = json.loads(written)
        del head["crc32"]
        path.write_text(json.dumps(head, ensure_ascii=False, indent=1) + "\n")
        WORKS[kind](place, folder)
        assert content(folder) == before
    finally:
        path.write_bytes(written)


def test_a_training_whose_note_is_broken_is_done_again(tmp_path: Path) -> None:
    place, out = prepare(tmp_path), tmp_path / "out"
    (place / "trainings.toml").write_text(
        (place / "trainings.toml").read_text().replace("seeds =", "keep = true\nseeds =")
    )
    WORKS[TRAININGS](place, out)
    before = content(out)
    notes = sorted(out.rglob("trained.json"))
    assert len(notes) == 2
    for path in notes:
        path.write_bytes(re.sub(rb"(\.\d*)\d", rb"\g<1>7", path.read_bytes(), count=1))
    # Without their records all of it is asked for once more.
    (out / "trainings.jsonl").unlink()
    WORKS[TRAININGS](place, out)
    assert content(out) == before
