"""Data sets that share texts: no model may be trained on one and evaluated on the other."""

from collections.abc import Iterable
from pathlib import Path

from raison.core.errors import InputError
from raison.data.dataset import Dataset
from raison.data.named import shared
from raison.models.loading.ready_made import zoo


def check_apart(learned: Iterable[str], judged: Iterable[Dataset | None]) -> None:
    """Raise InputError if a data set shares texts, by its name, with one that the evaluated model was trained on."""
    tested = [data.name for data in judged if data is not None]
    for trained in learned:
        for reason in (shared(trained, name) for name in tested):
            if reason is not None:
                raise InputError(reason)


def learned_by(model: str) -> list[str]:
    """The data set that a ready-made model, or an adapter's folder, states as its training data; empty for others."""
    folder = zoo.folder_of(model) if model in zoo.names() else Path(model)
    if not zoo.is_adapter(folder):
        return []
    train = zoo.read_card(folder).get("data", {}).get("train", {})
    return [train["name"]] if "name" in train else []
