"""Data sets that cannot be read from the Hub."""

from pathlib import Path

import pytest

import raison
from raison.core.errors import DataError, InputError
from raison.data.hub import load_hub
from raison.data.streams import Reading, sources_of

datasets = pytest.importorskip("datasets")


@pytest.mark.parametrize(("name", "hint"), [("sst-2", "'sst2'"), ("IMDB", "'imdb'"), ("someone/else", None)])
def test_a_named_set_that_may_have_been_meant(name: str, hint: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("not reached")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(DataError, match="cannot read the data set") as caught:
        load_hub(name, "train")
    assert (f"Did you mean {hint}" in str(caught.value)) if hint else ("Did you mean" not in str(caught.value))


@pytest.mark.parametrize("name", ["text", "csv", "json:x", "there:x"])
def test_files_of_the_machine_are_no_data_set_of_the_hub(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library reads a folder, and names of formats mean the files where it is called."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").write_text("my private note\n")
    (tmp_path / "there").mkdir()
    with pytest.raises(DataError, match=f"reads '{name}' from files of this machine, and not from the Hub"):
        raison.data.load(name, split="train")


def test_what_a_format_cannot_read_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise datasets.exceptions.DatasetGenerationError("an error occurred")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(DataError, match="cannot read the data set 'some/one'"):
        load_hub("some/one", "train")


@pytest.mark.parametrize("given", [{"text": ["a"]}, [{"text": "a"}], [3]])
def test_files_are_named_by_paths(given: object) -> None:
    with pytest.raises(InputError, match="files are named by a path, or by paths in a list, and not by a"):
        sources_of(given)  # type: ignore[arg-type]


def test_paths_may_come_one_by_one() -> None:
    assert sources_of(iter(["a.csv", Path("b.csv")])) == ("a.csv", "b.csv")  # type: ignore[arg-type]


def test_a_table_is_no_list_of_files() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="and not by a DataFrame: write it to a file"):
        sources_of(pandas.DataFrame({"text": ["a"]}))


@pytest.mark.parametrize("limit", [0, -1])
def test_no_rows_are_no_reading(limit: int) -> None:
    with pytest.raises(InputError, match="limit"):
        Reading(limit=limit)
