"""The training functions of a study and their settings, in one place so that tests can replace them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any


@dataclass(frozen=True, slots=True)
class Recipes:
    """`fine_tune(base, data, out, settings, dev)` and `train(model, data, out, settings, dev, command)`.

    `plain_settings` and `settings` are the classes of their settings, frozen dataclasses; `method` names the method
    that uses an explainer trained with given settings.
    """

    fine_tune: Callable[..., Mapping[str, Any]]
    train: Callable[..., Any]
    plain_settings: type
    settings: type
    method: Callable[[Any], str] = attrgetter("form")


def recipes() -> Recipes:
    """The training functions of raison.training."""
    # Imported here: importing transformers takes longer than reading a study file.
    from raison.training.recipes.ivra import fine_tune, train_ivra
    from raison.training.settings.ivra import FineTuneSettings, IvraSettings

    return Recipes(fine_tune, train_ivra, FineTuneSettings, IvraSettings)


def short_names(criteria: Sequence[str]) -> list[str]:
    """The paper's short names if they exist; a criterion with its own settings has none."""
    from raison.training.self_explaining.criterion import ALIASES

    known = {name: short for short, name in ALIASES.items()}
    return [known.get(criterion, criterion) for criterion in criteria]
