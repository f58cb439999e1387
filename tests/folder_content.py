"""What a folder of work holds, with and without what depends on the clock."""

import json
import re
from pathlib import Path

from pyarrow import parquet

_CLOCK = (
    "seconds", "training_seconds", "crc32", "spent", "estimate", "peak_bytes", "evaluated_seconds", "slowest", "bytes",
    "file_sha256",
)  # fmt: skip


def tree(folder: Path) -> dict[str, bytes]:
    """Every file, byte for byte."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def content(folder: Path) -> dict[str, object]:
    """Everything but what depends on the clock, and the folder's own name; of lines, the last whole one of each key."""
    found: dict[str, object] = {}
    for name, held in tree(folder).items():
        if Path(name).name.startswith("spent"):
            # Seconds alone.
            continue
        if name.endswith(".json"):
            found[name] = _timeless(json.loads(held), folder)
        elif name.endswith(".jsonl"):
            found[name] = _lines(held, folder)
        elif name.endswith(".parquet"):
            found[name] = _timeless(parquet.read_table(folder / name).to_pylist(), folder)
        else:
            found[name] = held.replace(str(folder).encode(), b"OUT")
    return found


def _lines(held: bytes, folder: Path) -> list[str]:
    found = {}
    for line in held.split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        # What follows the keys of a line is what was measured.
        known = {name: value for name, value in record.items() if isinstance(value, str | int)}
        key = tuple(f"{name} {value}" for name, value in known.items() if name not in (*_CLOCK, "prediction", "target"))
        found[key] = json.dumps(_timeless(record, folder), sort_keys=True)
    return sorted(found.values())


def _timeless(value: object, folder: Path) -> object:
    if isinstance(value, dict):
        return {key: _timeless(item, folder) for key, item in value.items() if key not in _CLOCK}
    if isinstance(value, str):
        return re.sub(re.escape(str(folder)), "OUT", value)
    return [_timeless(item, folder) for item in value] if isinstance(value, list) else value
