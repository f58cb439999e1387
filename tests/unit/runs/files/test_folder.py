"""What a manifest says is not believed."""

from dataclasses import asdict
from pathlib import Path

from raison.jobs.folder import EXPLANATIONS, write_marker
from raison.jobs.store import write_record
from raison.runs.files.folder import Receipt, read


def test_only_receipts_that_exist_are_read(tmp_path: Path) -> None:
    head = {"schema": 1, "sources": [], "rows": 3, "shards": 10**18, "format": "jsonl", "model": "m", "method": "lime"}
    write_marker(tmp_path, EXPLANATIONS, head | {"outputs": "classes"})
    for number in (7, 2, 123_456):
        write_record(tmp_path / "receipts" / f"{number:05}.json", asdict(Receipt(1, 1, (), 1, 0, 0.0, 1, "")))
    (tmp_path / "receipts" / "notes.json").touch()
    written = read(tmp_path)
    assert list(written.receipts) == [2, 7, 123_456]
    assert not written.is_complete
