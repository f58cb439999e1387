"""Records that other folders have are taken over by what determined them, and by nothing else."""

from pathlib import Path

import pytest

from raison.jobs.origins import ORIGIN, REUSED, Origins, stores_in
from raison.jobs.store import RecordStore

KNOWN = Origins(("row", "text"), {("a", 0): "one", ("a", 1): "two", ("b", 0): "three"})


def written(folder: Path, *records: dict[str, object], shard: int | None = None) -> Path:
    RecordStore(folder / "found.jsonl", shard).append(records)
    return folder


def test_a_record_gets_the_number_that_it_has_here(tmp_path: Path) -> None:
    source = written(tmp_path / "source", {"row": "a", "text": 7, "value": 3, ORIGIN: "two"}, {"row": "a", "text": 1})
    store = RecordStore(tmp_path / "own" / "found.jsonl")
    assert KNOWN.take_over(store, [source]) == 1
    assert store.read().records == ({"row": "a", "text": 1, "value": 3, ORIGIN: "two", REUSED: True},)
    assert KNOWN.take_over(store, [source]) == 0


def test_texts_that_are_there_twice_and_stores_one_below(tmp_path: Path) -> None:
    twice = Origins(("text",), {(0,): "same", (1,): "same", (2,): "other"})
    written(tmp_path / "study" / "first", {"text": 0, ORIGIN: "same"}, shard=2)
    written(tmp_path / "study" / "second", {"text": 5, ORIGIN: "same"}, {"text": 4, ORIGIN: "other"})
    store = RecordStore(tmp_path / "own" / "found.jsonl")
    assert twice.take_over(store, [tmp_path / "study"]) == 3
    assert sorted(line["text"] for line in store.read().records) == [0, 1, 2]


@pytest.mark.parametrize("hostile", [{}, {ORIGIN: ["one"]}, {ORIGIN: None}, {"row": ["a"], "text": {}, ORIGIN: 3}])
def test_lines_that_are_no_such_records_are_passed_over(tmp_path: Path, hostile: dict[str, object]) -> None:
    source = written(tmp_path / "source", hostile)
    store = RecordStore(written(tmp_path / "own", hostile) / "found.jsonl")
    assert KNOWN.take_over(store, [source]) == 0


def test_what_is_stamped_is_found_again(tmp_path: Path) -> None:
    record = KNOWN.stamped({"row": "b", "text": 0, "value": 1.5})
    source = written(tmp_path / "source", record)
    other = Origins(("row", "text"), {("z", 9): "three"})
    store = RecordStore(tmp_path / "own" / "found.jsonl")
    assert other.take_over(store, [source]) == 1
    assert store.read().records[0]["row"] == "z"


def test_only_files_of_the_name_are_stores_of_it(tmp_path: Path) -> None:
    for name in ("found.jsonl.gz", "below/found-2.jsonl", "other.jsonl", "deep/down/found.jsonl", ".found.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert stores_in(tmp_path, "found.jsonl") == [tmp_path / "below" / "found.jsonl", tmp_path / "found.jsonl"]
