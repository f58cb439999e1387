"""The explainer that a trained method asks for, made without training, for any model."""

from pathlib import Path

from raison.core.model import LanguageModel
from raison.models.derived.amortized import KIND
from raison.models.derived.attention_explainer import FORMS, Design
from tests.attention_explainers import untrained_attention
from tests.explainers import untrained, untrained_values


def untrained_for(method: str, model: LanguageModel, folder: Path, of: str = "probability") -> None:
    """Write what a method of this name reads to explain `of`, if it cannot explain all.

    Raises LookupError for a method of which this file knows no explainer.
    """
    if method in FORMS:
        untrained_attention(model, folder, Design(method))
    elif method == KIND:
        untrained_values(model, folder, of=of)
    elif method == "aml":
        untrained(model, folder)
    else:
        raise LookupError(f"{method} is TRAINED: write its explainer here, untrained (tests/untrained.py)")
