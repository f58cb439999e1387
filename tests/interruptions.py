"""What a study has written, without what may differ, and ways to cut work short."""

import json
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from raison.runs.table import comparison
from raison.studies.kinds.comparison.results import read as read_study


def interrupted_at(moment: int, work: Callable[[], object], *code: types.ModuleType) -> bool:
    """Whether Ctrl-C at this moment interrupts the work: Python delivers it at a call of this code, or after one."""
    events, files = 0, {module.__file__ for module in code}

    def interrupt(frame: types.FrameType, event: str, _: Any) -> None:
        nonlocal events
        if frame.f_code.co_filename in files and event in ("call", "c_return"):
            events += 1
            if events > moment:
                # Once, as a key is pressed once.
                sys.setprofile(None)
                raise KeyboardInterrupt

    earlier = sys.getprofile()
    try:
        sys.setprofile(interrupt)
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(earlier)
    return False


def timeless(value: object) -> object:
    """Without the seconds, which no two runs share."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in ("seconds", "crc32")}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def stored(path: Path) -> list[str]:
    """The last whole line of each key, sorted: a line that was cut is done again, and so is all of its chunk."""
    found = {}
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        key = tuple(str(record.get(name)) for name in ("row", "seed", "text", "metric"))
        found[key] = json.dumps(timeless(record), sort_keys=True)
    return sorted(found.values())


def content(folder: Path) -> dict[str, object]:
    """Everything that a study's folder holds but the seconds."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: stored(path) if path.suffix == ".jsonl" else path.read_bytes()
        for name, path in files.items()
        if path.suffix != ".part"
    }


def tables(folder: Path) -> dict[str, object]:
    return {name: timeless(comparison(found).to_dict()) for name, found in read_study(folder).runs.items()}


class Cut(BaseException):
    """Caught by nothing, as a kill is."""


class Interruption:
    """Stops the work at one of its moments: after a chunk, before a sync, or in the middle of writing.

    Nothing is written from then on, whoever tries: what is killed does not tidy up.
    """

    def __init__(self, moment: int) -> None:
        self.moment, self.seen = moment, 0

    def due(self) -> bool:
        self.seen += 1
        return 0 < self.moment <= self.seen

    def stop(self) -> BaseException:
        return Cut()

    def advance(self, _count: int) -> None:
        if self.due():
            raise self.stop()

    def write(self, file: int, data: bytes) -> int:
        if self.due():
            if self.seen == self.moment:
                os.write(file, data[: len(data) // 2])
            raise self.stop()
        return os.write(file, data)

    def fsync(self, file: int) -> None:
        if self.due():
            raise self.stop()
        os.fsync(file)

    def replace(self, source: Path, target: Path) -> None:
        if self.due():
            raise self.stop()
        os.replace(source, target)

    def unlink(self, path: Path) -> None:
        if self.due():
            raise self.stop()
        os.unlink(path)

    def rmdir(self, path: Path) -> None:
        if self.due():
            raise self.stop()
        os.rmdir(path)

    def as_os(self) -> types.SimpleNamespace:
        own = {name: getattr(self, name) for name in ("write", "fsync", "replace", "unlink", "rmdir")}
        return types.SimpleNamespace(**{**vars(os), **own})
