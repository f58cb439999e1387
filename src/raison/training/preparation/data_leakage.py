"""Data sets that share texts: no model may be trained on one and evaluated on the other."""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from raison.core.errors import InputError
from raison.data.dataset import Dataset
from raison.data.named import same_texts, shared
from raison.models.derived.attention_explainer import ExplainerForm
from raison.models.derived.cards import FILE
from raison.models.loading.ready_made import zoo

KNOWN = "held_out_in_model_training"
"""The entry of a card that says whether the held-out texts are of the data that the model was trained on."""


def check_apart(learned: Iterable[str], judged: Iterable[Dataset | None]) -> None:
    """Raise InputError if a data set shares texts, by its name, with one that the evaluated model was trained on."""
    tested = [data.name for data in judged if data is not None]
    for trained in learned:
        for reason in (shared(trained, name) for name in tested):
            if reason is not None:
                raise InputError(reason)


def learned_by(model: str) -> list[str]:
    """The data sets that a ready-made model, or a trained one's folder, states as its training data."""
    return [train["name"] for train in _recorded(model)]


def known_to(model: str, judged: Dataset) -> bool:
    """Whether these held-out texts are of the data that the model, by its own record, was trained on."""
    return any(same_texts(train, judged) for train in _recorded(model))


def _recorded(model: str) -> list[dict[str, str]]:
    """The records of a model's training data, with "name" and "sha256"."""
    folder = zoo.folder_of(model) if model in zoo.names() else Path(model)
    if zoo.is_adapter(folder):
        found = [_first(zoo.read_card(folder).get("data"))]
    else:
        found = [_first(_content(folder / zoo.CARD).get("data"))]
        for form in get_args(ExplainerForm):
            provenance = _content(folder / form / FILE).get("provenance")
            found.append(_first(provenance.get("data") if isinstance(provenance, dict) else None))
    return [one for one in found if isinstance(one.get("name"), str)]


def _first(data: object) -> dict[str, Any]:
    """The training data among a card's data sets: under its name, or the first of a list."""
    found = data.get("train") if isinstance(data, dict) else data[0] if isinstance(data, list) and data else None
    return found if isinstance(found, dict) else {}


def _content(path: Path) -> dict[str, Any]:
    """The content of a card in a folder of weights; nothing if there is none, or a file of another kind."""
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}
