"""Recommendations of audits, stored in the cache by the identity of the audited model.

A file holds a method's call and digests, and no text. Anyone who can write to the cache can write one, so it is treated
as untrusted input: anything but a recommendation for this model is ignored, and so is a call that is not `harmless`.
"""

import json
from dataclasses import fields
from functools import partial
from pathlib import Path

from raison.core.errors import DataError
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.registry import name_of
from raison.core.settings.reading import NAME, Fields, parse
from raison.jobs import disk
from raison.jobs.identity import digest_of
from raison.models.adapters.blackbox.function import BlackBox
from raison.models.adapters.classifier import text_classifier
from raison.models.derived.identity import identity_of
from raison.models.derived.per_model import made_once
from raison.paths import cache_folder

SCHEMA = 2
"""Recommendations of schema 1 may be based on few texts, or on a comparison without kernel_shap."""
LONGEST = 10_000
"""Maximum size of a file in bytes."""


def folder() -> Path:
    """Where recommendations are kept."""
    return cache_folder() / "audits"


def remember(model: LanguageModel, method: str) -> None:
    """Store an audit's recommendation for this exact model. Raises DataError if it cannot be written."""
    identity = _identity(model) or identity_of(model)
    held = {"schema": SCHEMA, "method": method, "identity": identity}
    disk.write_whole(_place(identity), json.dumps(held, indent=1) + "\n")


def kept(model: LanguageModel) -> Path | None:
    """The file of this exact model, if there is one; a changed model has none, and a changed function that is loaded
    again."""
    found = _found(model)
    return None if found is None else found[0]


def advised(model: LanguageModel) -> str | None:
    """The call of the method that an audit of this exact model recommended; None if there is none or it is damaged."""
    found = _found(model)
    if found is None:
        return None
    place, identity = found
    try:
        with place.open("rb") as file:
            recommendation = Fields(parse(file.read(LONGEST).decode(), "a recommendation"), "a recommendation")
        recommendation.schema(SCHEMA)
        recommendation.string("method", NAME)
        recommendation.mapping("identity")
    except (OSError, ValueError, DataError):
        return None
    held = recommendation.data
    current = held.get("schema") == SCHEMA and held["identity"] == identity
    return str(held["method"]) if current else None


def harmless(method: Method) -> bool:
    """Whether a call from the cache can be run: it names no file and no other method, and is not auto's own."""
    if name_of(method) == "auto":
        return False
    changed = [one.name for one in fields(method) if getattr(method, one.name) != one.default]
    if changed and method.trained:
        return False
    return all(_plain(getattr(method, name)) for name in changed)


def _found(model: LanguageModel) -> tuple[Path, dict[str, str]] | None:
    """The file of a model, if there is one, and the model's identity."""
    identity = _identity(model) if folder().is_dir() else None
    if identity is None:
        return None
    place = _place(identity)
    return (place, identity) if place.is_file() else None


def _identity(model: LanguageModel) -> dict[str, str] | None:
    """The identity of a model that auto explains; None for others.

    Found once, because auto asks for each of its batches: again when a network has changed, never for a function, whose
    answers may cost money.
    """
    reading = None if isinstance(model, BlackBox) else text_classifier(model)
    if reading is None and not isinstance(model, BlackBox):
        return None
    return made_once(model, None if reading is None else reading.model, "identity", partial(identity_of, model))


def _plain(value: object) -> bool:
    return value is None or isinstance(value, int | float) or (isinstance(value, str) and value.isidentifier())


def _place(identity: dict[str, str]) -> Path:
    return folder() / f"{digest_of(identity)}.json"
