"""Explanations that were made with another model than the one that evaluates them."""

from collections.abc import Sequence

import numpy as np

from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.core.results.notes import noise_in
from raison.core.targets.target import probabilities
from raison.explaining.batch import Batch

TOLERANCE = 0.02
"""By how much a probability may differ, for other batches and precisions; a number by this share of itself, or of 1."""


def check_outputs(model: LanguageModel, e: Explanation) -> None:
    """Raise InputError for an explanation of another kind of output, or of other classes."""
    if e.outputs != model.outputs:
        raise InputError(
            f"the explanation of {str(e.text)!r:.60} is about {e.outputs}, and {model.name} gives {model.outputs}: it "
            f"was made with another model ({e.model}); evaluate it with that one."
        )
    if model.choosing is None and e.answer is None and e.classes != model.classes:
        raise InputError(
            f"the explanation of {str(e.text)!r:.60} is about the classes {', '.join(e.classes)}, and those of "
            f"{model.name} are {', '.join(model.classes)}: it was made with another model; evaluate it with that one."
        )


def count_changed(batch: Batch, explanations: Sequence[Explanation]) -> int:
    """How many explanations state another prediction of the whole text than the model gives.

    Predictions at places are not compared: they are chosen anew. Nor are those of a model whose answers change from
    call to call, as those of a server may.
    """
    full, model = batch.full.double(), batch.model
    if model.choosing is not None or batch.unsteady:
        return 0
    found = full if model.outputs == "number" else probabilities(full, model.multi_label)
    return sum(_differs(e, np.array(values)) for e, values in zip(explanations, found.tolist(), strict=True))


def _differs(e: Explanation, found: np.ndarray) -> bool:
    stated = np.array([e.value_full] if e.outputs == "number" else e.probabilities)
    if stated.shape != found.shape or noise_in(e.notes) > 0:
        return False
    scale = np.maximum(1.0, np.abs(stated)) if e.outputs == "number" else 1.0
    return bool((np.abs(stated - found) > TOLERANCE * scale).any())


def caution_of_changed(changed: int, count: int, name: str) -> tuple[str, ...]:
    """What to report with scores of such explanations: a sentence or none."""
    if not changed:
        return ()
    return (
        f"{changed:,} of {count:,} explanations state another prediction than {name} gives: they were made with "
        "another model or version, and scores that use their stated values mix both",
    )
