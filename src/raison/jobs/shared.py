"""A temporary folder that a process shares with those that it starts for its work."""

import os
import tempfile
from functools import cache
from pathlib import Path

FOLDER = "RAISON_SHARED"
"""The environment variable with the folder of the process that started this one."""


def folder() -> Path:
    """The folder. The first process makes it, and removes it when it ends; what outlives it has one of its own."""
    given = os.environ.get(FOLDER)
    return Path(given) if given and Path(given).is_dir() else Path(_own().name)


def for_started() -> dict[str, str]:
    """What the environment of a process has to say for it to have the same folder."""
    return {FOLDER: str(folder())}


@cache
def _own() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="raison-")
