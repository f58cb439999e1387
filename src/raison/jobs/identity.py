"""The identity of long work: named digests of the model, the data and the settings."""

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from raison.core.errors import DataError, RaisonError
from raison.jobs import disk
from raison.jobs.folder import WorkKind, read_marker, refuse_others, working_in, write_marker

IDENTITY = "identity"
WEIGHTS, TOKENIZER, CONFIGURATION = "model weights", "tokenizer", "model configuration"
ANSWERS = "answers of the function"
DATA, SETTINGS = "data", "settings"
FILES = "files of "
"""Prefix of a method's or metric's label, for the trained explainer or other files that it reads."""

_LIBRARIES = ("torch", "transformers", "numpy")

Identity = Mapping[str, str]
"""Digests of everything that determines the numbers, by the names that errors use."""


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that determine the numbers."""
    return {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}


def digest_of(value: object) -> str:
    """The digest of plain values; values that JSON lacks count by their repr."""
    serialized = json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)
    return hashlib.sha256(serialized.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def of_several(identities: Mapping[str, Identity]) -> dict[str, str]:
    """The identities of several models or tasks as one, by their names."""
    return {f"{part} of {name}": digest for name, digests in identities.items() for part, digest in digests.items()}


def of_one(identity: Identity, name: str) -> dict[str, str]:
    """The identity of one of several."""
    ending = f" of {name}"
    return {part.removesuffix(ending): digest for part, digest in identity.items() if part.endswith(ending)}


def differing(known: Identity, requested: Identity) -> list[str]:
    """The names of the parts that differ."""
    return [part for part in dict.fromkeys([*requested, *known]) if known.get(part) != requested.get(part)]


def refuse(place: Path, what: str, names: Iterable[str]) -> None:
    """Raise DataError with the parts that differ, if any."""
    listed = list(dict.fromkeys(names))
    if listed:
        raise DataError(
            f"{place} holds another {what} (it differs in {', '.join(listed)}): choose another folder for --out, or "
            "delete this one."
        )


def check(place: Path, what: str, known: Mapping[str, Any], requested: Identity) -> None:
    """Raise DataError unless the folder's file `known` has the expected identity.

    A file of an older version has no identity: its model may be another one, so nothing is added to it.
    """
    if IDENTITY not in known:
        raise DataError(
            f"{place} was written by an older version of raison, which did not record the model, data and settings. It "
            "can still be read and reported; to continue, choose another folder for --out (--reuse takes over "
            "finished rows of a comparison), or delete this one."
        )
    refuse(place, what, differing(known[IDENTITY], requested))


def _begun(place: Path, kind: WorkKind, requested: Identity) -> bool:
    """Whether the folder holds this training. Raises DataError for another one."""
    known = read_marker(place, kind)
    if known is not None:
        check(place, "training", known, requested)
    return known is not None


@contextmanager
def training_in(place: Path, kind: WorkKind, requested: Identity) -> Iterator[None]:
    """Inside, the folder belongs to this training. Its identity is written first; DataError for a different one.

    If a mistake is found before training starts, the folder is left clean for the next try.
    """
    refuse_others(place, kind)
    # Another training's folder is refused before partial files in it are removed, and again once the lock is held.
    _begun(place, kind, requested)
    with working_in(place, kind):
        if not _begun(place, kind, requested):
            write_marker(place, kind, {"schema": 1, "kind": kind.name, IDENTITY: dict(requested)})
        try:
            yield
        except RaisonError:
            if all(path.name == kind.marker or path.name.startswith(".") for path in place.iterdir()):
                disk.remove(place / kind.marker)
            raise
