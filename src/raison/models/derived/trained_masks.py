"""Trained models that mask (AML) on disk: a folder with explainer.json and one safetensors file per metric."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from raison.core.errors import DataError, InputError
from raison.core.model import LanguageModel
from raison.core.settings.reading import Fields
from raison.jobs import disk
from raison.models.derived import cards, explainers
from raison.models.derived.attributor import Attributor
from raison.models.derived.cards import FILE


@dataclass(frozen=True, slots=True)
class MaskGoal:
    """The best state for one metric: its file, the losses' weights, the learning rate, and how it was found."""

    file: str
    weights: Mapping[str, float]
    learning_rate: float
    validation: float
    step: int


@dataclass(frozen=True, slots=True)
class MaskCard:
    """The card of a model that masks (AML).

    `model`, `classes`, `vocabulary` (a digest of the tokenizer's), `said` (probabilities on probe texts), `identity`
    (digests of the weights and the rest) and `logits` (on parts of the probe texts) identify the model that it
    explains; cards of older versions lack the last two. `backbone` is "own" (the explained model's own encoder), a
    known base or a folder.
    """

    model: str
    classes: tuple[str, ...]
    vocabulary: str
    said: tuple[tuple[float, ...], ...]
    backbone: str
    rank: int | None
    masking: str
    filler: str | None
    size: str
    merge: str
    unit: str
    goals: Mapping[str, MaskGoal]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, str] = field(default_factory=dict)
    logits: tuple[tuple[float, ...], ...] = ()


def _check(card: Fields) -> None:
    explainers.check_said(card)
    for name in ("backbone", "masking", "size", "merge", "unit"):
        card.string(name)
    card.optional_string("filler")
    if card.data.get("rank") is not None:
        card.whole("rank", least=1)
    for name, goal in card.mapping("goals").items():
        if not isinstance(goal, dict):
            raise DataError(f"not {card.what}: the goal {name!r:.40} is {goal!r:.40}; it must be an object.")
        fields = Fields(goal, f"{card.what}: the goal {name!r:.40}")
        fields.string("file")
        if not goal["file"] or set(goal["file"]) & set("/\\:\0"):
            fields.refuse("file", "a file's name in the explainer's folder")
        for weight in fields.mapping("weights"):
            Fields(goal["weights"], f"{fields.what}: weights").number(weight)
        fields.number("learning_rate", 0.0)
        fields.number("validation")
        fields.whole("step")


def _goal(values: dict[str, Any]) -> MaskGoal:
    numbers = {name: float(values[name]) for name in ("learning_rate", "validation")}
    weights = {name: float(weight) for name, weight in values["weights"].items()}
    return MaskGoal(**values | numbers | {"weights": weights})


def read_card(folder: Path, model: str) -> MaskCard:
    """Raises LoadError for a missing explainer, with the way to train one for `model`, or a broken one."""
    lacking = (
        f"there is no trained explainer in {folder}: train one (raison train aml --model {model} "
        "--data SET:SPLIT), or name its folder (aml(checkpoint='FOLDER'))."
    )
    return cards.read_card(folder, _card, lacking, "aml")


def _card(content: dict[str, Any]) -> MaskCard:
    _check(Fields({"provenance": {}} | content, "an explainer's card"))
    goals = {name: _goal(goal) for name, goal in content["goals"].items()}
    if not goals:
        raise ValueError("it was not trained for any metric")
    known = {"goals": goals, "classes": tuple(content["classes"])}
    return MaskCard(**content | known | explainers.said_in(content))


def write(folder: Path, card: MaskCard, states: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Save the states, by file name, in half precision, and the card last: it marks a finished explainer."""
    disk.remove(folder / FILE)
    for name, state in states.items():
        explainers.write_weights(folder / name, state)
    cards.write_card(folder, card)


def load_attributor(folder: Path, card: MaskCard, goal: str, model: LanguageModel) -> Attributor:
    """The best attribution model for a metric, in evaluation mode, on the explained model's device."""
    attributor = explainers.new_attributor(model, card.backbone, card.rank, learned=card.masking == "learned")
    return explainers.load_weights(attributor, folder / card.goals[goal].file, card.backbone)


def goal_of(card: MaskCard, metric: str | None, folder: Path) -> str:
    """The metric whose state is used: the card's first by default. Raises InputError."""
    if metric is None:
        return next(iter(card.goals))
    if metric not in card.goals:
        raise InputError(
            f"the explainer in {folder} was not trained for the metric '{metric}' but for {', '.join(card.goals)}: "
            f"name one of these, or train for it (raison train aml --metrics {metric})."
        )
    return metric
