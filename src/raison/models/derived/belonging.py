"""Whether an explainer was trained for a model: what its card records of the model, and the comparison with another."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from raison.core.errors import UnsupportedError
from raison.core.model import LanguageModel
from raison.models.adapters.classifier import text_classifier
from raison.models.derived.explainers import TOLERANCE, OfModel, probes_of, said_by, vocabulary_of
from raison.models.derived.identity import identity_of

LOGIT_TOLERANCE, ROUNDED_TOLERANCE = 0.02, 0.15
"""Tolerances of logits, as shares of the largest one (at least 1): in single precision, and if either model has less.
The contract tests hold every family in bfloat16 to the latter.
"""
BITS = "bits"
"""The entry among the digests for the least precision of a model's weights."""


def marks_of(model: LanguageModel) -> dict[str, Any]:
    """The entries of a card that identify the model that its explainer is trained for."""
    return {
        "model": model.name,
        "classes": model.classes,
        "vocabulary": vocabulary_of(model),
        "said": said_by(model),
        "identity": _identity(model),
        "logits": tuple(tuple(round(value, 4) for value in row) for row in _logits(model).tolist()),
    }


def check_fits(card: OfModel, model: LanguageModel, folder: Path, command: str = "aml") -> None:
    """Raise UnsupportedError, with every reason, unless the explainer was trained for this model.

    `command` is that of `raison train` which trains another.
    """
    if reasons := other_facts(card, model) or other_answers(card, model):
        raise UnsupportedError(
            f"the explainer in {folder} was trained for {card.model} and does not explain {model.name}",
            reasons,
            f"Train one: raison train {command} --model {model.name} --data SET:SPLIT.",
        )


def other_facts(card: OfModel, model: LanguageModel) -> list[str]:
    """The reasons why a model with such labels and tokens is not the card's."""
    reasons = []
    if card.classes != model.classes:
        reasons.append(f"its labels are {', '.join(card.classes)}, the model's are {', '.join(model.classes)}")
    if card.vocabulary != vocabulary_of(model):
        reasons.append("it was trained with another tokenizer")
    return reasons


def other_answers(card: OfModel, model: LanguageModel) -> list[str]:
    """The reason why a model that answers so is not the card's, of one with the same labels and tokens.

    A model of the same weights is accepted. Another one may still be the same in another precision, or with its adapter
    merged elsewhere: then its logits agree on the probes and on parts of them. Of cards without logits, as older
    versions wrote them, only the probabilities on the probes are compared, which many sure models share.
    """
    if card.identity and card.identity == _identity(model):
        return []
    return _different_words(card.said, model) or (_different_logits(card, model) if card.logits else [])


def _identity(model: LanguageModel) -> dict[str, str]:
    """The digests of a transformer; none of another model, whose digest is that of rounded answers."""
    return {} if text_classifier(model) is None else identity_of(model) | {BITS: str(_bits(model))}


def _bits(model: LanguageModel) -> int:
    """The least precision of a transformer's weights."""
    classifier = text_classifier(model)
    weights = [] if classifier is None else [one.dtype for one in classifier.model.parameters()]
    return 8 * min((kind.itemsize for kind in weights if kind.is_floating_point), default=4)


def _different_words(expected: Sequence[Sequence[float]], model: LanguageModel) -> list[str]:
    """The reason if the model's predictions on its probes differ from the card's, otherwise none."""
    shares = said_by(model)
    if [*map(len, expected)] != [*map(len, shares)]:
        return ["its card has other numbers of probabilities than the model"]
    for probe, before, now in zip(probes_of(model), expected, shares, strict=True):
        gap = max(abs(a - b) for a, b in zip(before, now, strict=True))
        if gap > TOLERANCE:
            return [f"on {probe!r} the two models' probabilities differ by {gap:.2f}"]
    return []


def _different_logits(card: OfModel, model: LanguageModel) -> list[str]:
    """The reason if the model's logits on parts of its probes differ from the card's, otherwise none."""
    expected, logits = card.logits, _logits(model)
    if {len(row) for row in expected} != {logits.shape[1]} or len(expected) != len(logits):
        return ["its card has other numbers of logits than the model"]
    before = torch.tensor(expected, dtype=torch.float64)
    apart = before - logits
    if not model.multi_label and logits.shape[1] > 1:
        # What all classes share decides nothing.
        apart = apart - apart.mean(-1, keepdim=True)
    gap = float(apart.abs().max())
    rounded = _bits(model) < 32 or card.identity.get(BITS) in ("8", "16")
    tolerance = ROUNDED_TOLERANCE if rounded else LOGIT_TOLERANCE
    if not gap <= tolerance * max(1.0, float(before.abs().max())):
        return [f"its weights are not the model's, and on parts of two texts their logits differ by up to {gap:.2g}"]
    return []


def _logits(model: LanguageModel) -> Tensor:
    """The logits on the probes and parts of them, a row each."""
    encoding = model.encode(probes_of(model), "token")
    keeps = [_parts(int(count)) for count in encoding.unit_counts]
    removal = "delete" if "delete" in model.removals else model.removals[0]
    return torch.cat(model.masked_logits(encoding, keeps, removal)).double()


def _parts(units: int) -> Tensor:
    """The whole text, its halves, every second unit, and two of three: sure models are less sure of these."""
    place = torch.arange(units)
    halves = [place < units // 2, place >= units // 2, place % 2 == 0, place % 2 == 1]
    return torch.stack([place >= 0, *halves, *(place % 3 != left for left in range(3))])
