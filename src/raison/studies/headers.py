"""The file of a study's folder that says what was asked: written first, and the same whenever the study goes on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.jobs.folder import Kind, read_marker, refuse_others, write_marker
from raison.jobs.identity import IDENTITY, SETTINGS, check, refuse
from raison.jobs.store import write_whole
from raison.studies.kinds.comparison.results import FILE

UNCOMPARED = ("versions", IDENTITY)


def check_goes_on(folder: Path, kind: Kind, digest: str, limit: int | None, resume: bool) -> None:
    """DataError unless a study may write here: the folder holds none, or with `resume` this one. Touches nothing.

    Asked before models and data are loaded; `check_header` asks the rest.
    """
    refuse_others(folder, kind)
    known = read_marker(folder, kind)
    if known is None:
        return
    if known.get("digest") != digest:
        refuse(folder, "study", [SETTINGS])
    if known.get("limit") != limit:
        rows = "all rows" if known.get("limit") is None else f"--limit {known['limit']}"
        raise DataError(f"{folder} holds this study with {rows}: ask for the same, or choose another folder for --out.")
    if not resume:
        raise DataError(
            f"{folder} holds this study already: --resume goes on with it; or choose another folder for --out."
        )


def check_header(folder: Path, kind: Kind, header: Mapping[str, Any]) -> None:
    """DataError, naming what differs, where the folder holds another study of this kind. Touches nothing."""
    refuse_others(folder, kind)
    known = read_marker(folder, kind)
    if known is None:
        return
    check(folder, "study", known, header[IDENTITY])
    keys = (known.keys() | header.keys()) - set(UNCOMPARED)
    refuse(folder, "study", sorted(key for key in keys if known.get(key) != header.get(key)))


def begin_study(folder: Path, kind: Kind, header: Mapping[str, Any], text: str) -> None:
    """Write the header, then the study file, where they are not there yet; what is there is checked again."""
    if read_marker(folder, kind) is None:
        write_marker(folder, kind, header)
    check_header(folder, kind, header)
    if not (folder / FILE).exists():
        write_whole(folder / FILE, text)
