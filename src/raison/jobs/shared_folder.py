"""A temporary folder that a process shares with those that it starts for its work."""

import os
import tempfile
from functools import cache
from pathlib import Path

FOLDER = "RAISON_SHARED"
"""The environment variable with the folder of the process that started this one."""


def folder() -> Path:
    """The folder. The first process creates it and removes it at exit; a process that outlives it creates its own."""
    given = os.environ.get(FOLDER)
    return Path(given) if given and Path(given).is_dir() else Path(_own().name)


def for_started() -> dict[str, str]:
    """The environment variables that give another process the same folder."""
    return {FOLDER: str(folder())}


@cache
def _own() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="raison-")
