"""The store of records loses nothing that was written."""

import errno
import gzip
import os
from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.data import RecordStore
from raison.jobs import store as stores
from raison.jobs.disk import write_whole
from raison.jobs.store import read_head, read_record, write_record


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "new" / "records.jsonl")
    assert store.read().records == ()
    store.append([{"a": 1}, {"a": "é\u2028\n"}])
    store.append([])
    store.append([{"a": 3}])
    assert store.read().records == ({"a": 1}, {"a": "é\u2028\n"}, {"a": 3})
    assert store.read().dropped == 0


def test_each_append_is_one_write_that_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda file, content: calls.append("write") or write(file, content))
    monkeypatch.setattr(os, "fsync", lambda file: calls.append("fsync") or fsync(file))
    RecordStore(tmp_path / "records.jsonl").append([{"a": 1}, {"a": 2}])
    assert calls == ["write", "fsync", "fsync"], "the file, and the folder that now has it"
    calls.clear()
    RecordStore(tmp_path / "records.jsonl").append([{"a": 3}])
    assert calls == ["write", "fsync"]


def test_a_cut_last_line_is_dropped_and_nothing_is_glued_to_it(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "records.jsonl")
    store.append([{"a": 1}, {"a": 2}])
    store.path.write_bytes(store.path.read_bytes()[:-24])
    assert store.read().records == ({"a": 1},)
    assert store.read().dropped == 1
    store.append([{"a": 3}])
    assert store.read().records == ({"a": 1}, {"a": 3})


@pytest.mark.parametrize("line", [b"nonsense\n", b"[1]\n", b"\xff\xfe\n"])
def test_broken_lines_are_counted(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line + b'{"a": 2}\n')
    stored = RecordStore(path).read()
    assert stored.records == ({"a": 1}, {"a": 2})
    assert stored.dropped == 1


@pytest.mark.parametrize(("code", "words"), [(errno.ENOSPC, "no space left"), (errno.EIO, "cannot write")])
def test_a_full_disk_keeps_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    store = RecordStore(tmp_path / "records.jsonl")
    store.append([{"a": 1}])
    write = os.write

    def partly(file: int, content: bytes) -> int:
        if len(content) < 20:
            raise OSError(code, os.strerror(code))
        return write(file, content[:10])

    monkeypatch.setattr(os, "write", partly)
    with pytest.raises(DataError, match=words):
        store.append([{"text": "long enough to be cut"}])
    monkeypatch.undo()
    assert store.read().records == ({"a": 1},)
    assert store.read().dropped == 0
    store.append([{"a": 2}])
    assert store.read().records == ({"a": 1}, {"a": 2})


def test_numbers_that_json_lacks_are_refused(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "records.jsonl")
    with pytest.raises(ValueError, match="JSON"):
        store.append([{"a": float("nan")}])
    assert not store.path.exists()


def test_a_whole_file_replaces_the_old_one_or_leaves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "page.html"
    write_whole(path, "old")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DataError, match="no space left"):
        write_whole(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    write_whole(path, "new")
    assert path.read_text() == "new"


def test_a_digit_that_changed_on_the_disk_is_said(tmp_path: Path) -> None:
    """With the file, the line and the way out; wherever in the line it is."""
    store = RecordStore(tmp_path / "records.jsonl")
    store.append([{"score": 0.125, "row": "a"}, {"score": 0.75, "row": "b"}])
    whole = store.path.read_bytes()
    for place in (place for place, byte in enumerate(whole) if chr(byte).isdigit()):
        if b"crc32" in whole[place - 5 : place + 2]:
            continue
        changed = bytearray(whole)
        changed[place] = ord("9") if changed[place] != ord("9") else ord("8")
        store.path.write_bytes(bytes(changed))
        line = 1 + whole[:place].count(b"\n")
        with pytest.raises(DataError, match=rf"records\.jsonl, line {line}: the record was changed.*delete the line"):
            store.read()


def test_lines_of_older_versions_are_read_beside_new_ones(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "records.jsonl")
    store.path.write_text('{"a": 1}\n')
    store.append([{"a": 2}])
    assert store.read().records == ({"a": 1}, {"a": 2})


def test_records_are_found_by_where_they_begin(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "records.jsonl")
    store.append([{"a": n} for n in range(5)])
    places = [line.place for line in store.lines()]
    assert [record["a"] for record in store.at(places[::-2])] == [4, 2, 0]


def test_a_file_of_one_record_notices_every_changed_byte(tmp_path: Path) -> None:
    path, record = tmp_path / "pairs.json", {"pairs": [0.25, None, "é"]}
    assert read_record(path) is None
    write_record(path, record)
    assert read_record(path) == record
    held = path.read_bytes()
    name = held.index(b"crc32")
    # The name of the checksum alone is no part of the record: without it the file is one of an older version.
    for place in (*range(name), *range(name + len(b"crc32"), len(held) - 1)):
        path.write_bytes(held[:place] + bytes([held[place] ^ 1]) + held[place + 1 :])
        with pytest.raises(DataError, match=r"cannot read .*pairs\.json \(.*\): delete it and run .* --resume"):
            read_record(path)


def test_a_file_of_one_record_of_an_older_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text('{\n "majorities": {"d": 0.5}\n}\n')
    assert read_record(tmp_path / "labels.json") == {"majorities": {"d": 0.5}}


def test_a_compressed_file_of_one_record_is_read_and_a_plain_one_replaces_it(tmp_path: Path) -> None:
    path, packed = tmp_path / "pairs.json", tmp_path / "pairs.json.gz"
    write_record(path, {"pairs": [0.25]})
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert read_record(path) == {"pairs": [0.25]}
    whole = packed.read_bytes()
    for broken in (b"no gzip", whole[:-12], gzip.compress(gzip.decompress(whole).replace(b"0.25", b"0.75"))):
        packed.write_bytes(broken)
        with pytest.raises(DataError, match=r"cannot read .*pairs\.json\.gz \(.*\): delete it"):
            read_record(path)
    write_record(path, {"pairs": [0.5]})
    assert read_record(path) == {"pairs": [0.5]}


def test_what_several_processes_wrote_is_read_together(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    for shard in (None, 2, 11):
        RecordStore(path, shard).append([{"of": shard or 0, "number": n} for n in range(2)])
    (tmp_path / "records-old.jsonl").write_text("nobody's\n")
    assert sorted(found.name for found in tmp_path.iterdir()) == [
        "records-11.jsonl",
        "records-2.jsonl",
        "records-old.jsonl",
        "records.jsonl",
    ]
    store = RecordStore(path)
    assert [(one["of"], one["number"]) for one in store.read().records] == [
        (of, n) for of in (0, 2, 11) for n in (0, 1)
    ]
    places = [line.place for line in store.lines()]
    assert [one["of"] for one in store.at(reversed(places))] == [11, 11, 2, 2, 0, 0]
    (tmp_path / "records-2.jsonl").write_text('{"of": 3}\n{"of"')
    assert store.read().dropped == 1


def test_a_place_where_no_record_begins_is_said(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "records.jsonl")
    with pytest.raises(DataError, match="cannot read"):
        list(store.at([0]))
    store.append([{"a": 1}])
    with pytest.raises(DataError, match="byte 3: the record was changed"):
        list(store.at([3]))
    with pytest.raises(DataError, match="byte 99: no record begins there"):
        list(store.at([99]))
    store.path.write_bytes(store.path.read_bytes().replace(b'"a": 1', b'"a": 2'))
    with pytest.raises(DataError, match="byte 0: the record was changed"):
        list(store.at([0]))


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_may_not_take_any_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    monkeypatch.setattr(stores, "LONGEST", 1000)
    store = RecordStore(tmp_path / "records.jsonl")
    store.append([{"a": 1}, {"a": "b" * 900}])
    assert len(store.read().records) == 2
    [first, last] = [line.place for line in store.lines()]
    store.append([{"a": "b" * 2000}])
    if packed:
        store.path.with_name("records.jsonl.gz").write_bytes(gzip.compress(store.path.read_bytes()))
        store.path.unlink()
    with pytest.raises(DataError, match="a line of more than 0 MiB"):
        store.read()
    assert len(list(store.at([first, last]))) == 2


def test_a_compressed_object_may_not_take_any_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "head.json"
    write_record(path, {"a": "b" * 2000})
    monkeypatch.setattr(stores, "LONGEST", 1000)
    assert read_record(path) == {"a": "b" * 2000}
    path.with_name("head.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    for read in (read_record, read_head):
        with pytest.raises(DataError, match="it unpacks to more than"):
            read(path)
