"""Data sets that share texts: a model never learns from one and is judged on the other."""

from collections.abc import Iterable
from pathlib import Path

from raison.core.errors import InputError
from raison.data.dataset import Dataset
from raison.data.named import shared
from raison.models.loading import zoo


def check_apart(learned: Iterable[str], judged: Iterable[Dataset | None]) -> None:
    """InputError where a data set that a model is judged on shares texts with one, by name, that it learned from."""
    tested = [data.name for data in judged if data is not None]
    for trained in learned:
        for reason in (shared(trained, name) for name in tested):
            if reason is not None:
                raise InputError(reason)


def learned_by(model: str) -> list[str]:
    """The data set that a ready-made model, or an adapter's folder, says that it learned from; nothing for others."""
    folder = zoo.folder_of(model) if model in zoo.names() else Path(model)
    if not zoo.is_adapter(folder):
        return []
    train = zoo.read_card(folder).get("data", {}).get("train", {})
    return [train["name"]] if "name" in train else []
