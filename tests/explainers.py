"""Explainers that nobody trained, for any model: attribution models with random weights, saved as trained ones are."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from raison.core.capabilities.step_logits import StepLogits
from raison.core.inputs.unit import Granularity
from raison.core.model import LanguageModel
from raison.core.problem import Ledger, Problem
from raison.explaining.batch import prepare
from raison.explaining.settings import Settings
from raison.masking.substitutes import masking_name
from raison.methods.aml import Aml
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.writer import Writer
from raison.models.derived import amortized, explainers, trained_masks
from raison.models.derived.amortized import AmortizedCard, new_predictor
from raison.models.derived.attributor import FIXED, Attributor
from raison.models.derived.belonging import marks_of
from raison.models.derived.explainers import new_attributor
from raison.models.derived.trained_heads import card_of
from raison.models.derived.trained_heads import write as write_heads
from raison.models.derived.trained_masks import MaskCard, MaskGoal
from tests.tiny import TINY
from tests.toys import generators

WEIGHTS = {"prediction": 1.0, "inverse": 0.7, "size": 0.4}
RATE = 0.01
STATE = "state.safetensors"


def saved_encoder(folder: Path, name: str = "bert") -> str:
    """The encoder of a tiny model and its tokenizer in a folder; its path."""
    model, tokenizer = TINY[name]()
    model.base_model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def untrained(
    model: LanguageModel,
    folder: Path,
    *,
    rank: int | None = 2,
    backbone: str | None = None,
    metrics: Sequence[str] = ("comprehensiveness",),
    **settings: Any,
) -> MaskCard:
    """Write an explainer of `model` whose weights are drawn, always the same, and return what it says of itself.

    `backbone` None is the model's own encoder, or a tiny BERT for a model that reads from left to right. `settings` are
    fields of the card (masking, filler, size, merge, ...).
    """
    backbone = backbone or _backbone(model, folder)
    masking = masking_name(model, settings.pop("masking", None))
    state = _drawn(new_attributor(model, backbone, rank, learned=masking == "learned"))
    usual: dict[str, Any] = {
        **marks_of(model),
        "filler": None,
        "size": "cross_entropy",
        "merge": "max",
        "unit": "token",
        "goals": {metric: MaskGoal(STATE, WEIGHTS, RATE, 0.5, 1) for metric in metrics},
    }
    card = MaskCard(**usual | {"backbone": backbone, "rank": rank, "masking": masking} | settings)
    trained_masks.write(folder, card, {STATE: state})
    return card


def untrained_values(model: LanguageModel, folder: Path, *, rank: int | None = 2, **settings: Any) -> AmortizedCard:
    """The same of an explainer that predicts Shapley values."""
    usual: dict[str, Any] = {
        **marks_of(model),
        "backbone": _backbone(model, folder),
        "of": "probability",
        "removal": model.removals[0],
        "unit": "word",
        "scale": 0.5,
    }
    card = AmortizedCard(**usual | {"rank": rank} | settings)
    amortized.write(folder, card, _drawn(new_predictor(model, card.backbone, rank)))
    return card


def _backbone(model: LanguageModel, folder: Path) -> str:
    return saved_encoder(folder / "backbone") if model.offers(StepLogits) else explainers.OWN


def _drawn(attributor: Attributor) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(11)
    trained = {name: parameter for name, parameter in attributor.named_parameters() if parameter.requires_grad}
    return {
        # The prediction's embedding is as large as a tiny model's words: maps then depend on it.
        name: parameter.detach() + (1.0 if name in FIXED else 0.3) * torch.randn(parameter.shape, generator=generator)
        for name, parameter in trained.items()
    }


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what an explainer's card says."""
    path = folder / explainers.FILE
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def problem_of(
    adapter: Classifier, texts: Sequence[str], unit: Granularity = "token", target: str | None = None
) -> Problem:
    batch = prepare(adapter, texts, Settings(unit=unit, target=target))
    return Problem(adapter, batch.encoding, batch.target, batch.removal, Ledger.empty(len(texts)), batch.evaluations)


def maps_of(problem: Problem, method: Aml) -> list[Tensor]:
    """Every text's own maps, (maps, units), without padding."""
    found = method.candidates(problem, generators(len(problem.encoding)))
    assert len(found) == method.maps
    counts = problem.encoding.unit_counts
    for text, count in enumerate(counts):
        assert not found[:, text, count:].any()
    return [found[:, text, :count] for text, count in enumerate(counts)]


def trained_heads(writer: Writer, folder: Path, weights: Tensor) -> None:
    """Weights of a writer's attention heads, given and not learned."""
    write_heads(folder, card_of(writer, weights.double(), {}))
