"""The ready-made models' own files: what shipped is checked before it is used."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from raison.core.errors import LoadError, UnknownNameError
from raison.models.loading.ready_made import shipped, zoo


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One model's files in a place where they may be changed."""
    shutil.copytree(shipped.FOLDER / "sst2", tmp_path / "sst2")
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    return tmp_path / "sst2"


def test_every_file_that_ships_is_listed_as_it_is() -> None:
    listed = json.loads(shipped.LIST.read_text(encoding="utf-8"))
    there = [(path, folder) for folder in (shipped.FOLDER, shipped.STUDIES) for path in shipped.files(folder)]
    assert set(listed) == {path.relative_to(folder).as_posix() for path, folder in there}
    assert {f"demo/{place.partition('/')[0]}" for place in listed} == set(zoo.names())
    for name in zoo.names():
        assert (zoo.folder_of(name) / zoo.CARD).is_file()
    assert sum(path.stat().st_size for path in shipped.files(shipped.FOLDER)) < 7_000_000


def test_what_an_installation_lacks_is_told_apart_from_what_there_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shipped, "STUDIES", tmp_path)
    assert "demo/imdb" not in zoo.names()
    with pytest.raises(LoadError, match="demo/imdb belongs to the studies"):
        zoo.resolve("demo/imdb")
    with pytest.raises(UnknownNameError, match="demo/imbd"):
        zoo.resolve("demo/imbd")


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


CHANGES: dict[str, Callable[[Path], object]] = {
    "flipped": flipped,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "gone": lambda path: path.unlink(),
    "added": lambda path: path.with_name("more.json").write_text("{}"),
}


@pytest.mark.parametrize(
    "file", ["adapter_model.safetensors", "adapter_config.json", "card.json", "aml/explainer.json"]
)
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_not_used(change: str, file: str, copied: Path) -> None:
    zoo.folder_of("demo/sst2")
    CHANGES[change](copied / file)
    told = "more.json is not one" if change == "added" else f"{file} of the ready-made models"
    with pytest.raises(LoadError, match=told) as caught:
        zoo.folder_of("demo/sst2")
    assert "install raison again" in str(caught.value)
    assert "\n" not in str(caught.value)
