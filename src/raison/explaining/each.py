"""Every predicted label of a text as a target of its own, from one encoding and shared evaluations."""

from dataclasses import replace

from raison.core.choices import EACH
from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.core.outputs import THRESHOLD
from raison.core.problem import Evaluations
from raison.core.target import TargetSpec, probabilities, resolve_target
from raison.explaining.attribution import Batch


def threshold_of(model: LanguageModel, target: TargetSpec, given: float | None) -> float:
    """The probability from which a label is explained.

    Raises InputError for a threshold without target="each", or where the model does not give labels.
    """
    if target != EACH:
        if given is None:
            return THRESHOLD
        raise InputError("threshold= says which labels target='each' explains: give that target, or leave it out.")
    if model.outputs != "labels":
        kind = "one number" if model.outputs == "number" else f"one of {len(model.classes)} classes"
        raise InputError(
            f"target='each' explains every label of a multi-label model, and {model.name} gives {kind}: name one "
            "target, or leave it out."
        )
    if given is not None and not 0 <= given <= 1:
        raise InputError(f"threshold={given} is no probability: give a number from 0 to 1.")
    return THRESHOLD if given is None else float(given)


def predicted_labels(batch: Batch, threshold: float) -> list[list[int]]:
    """The numbers of each text's labels from the threshold on, the likeliest first."""
    shares = probabilities(batch.full.double(), batch.model.multi_label)
    order = shares.argsort(descending=True, stable=True).tolist()
    return [[label for label in ranked if own[label] >= threshold] for ranked, own in zip(order, shares, strict=True)]


def with_targets(batch: Batch, threshold: float) -> tuple[Batch | None, list[int]]:
    """A row for every label from the threshold on, the likeliest of a text first, and the text of each row.

    None in place of a batch without any. Rows of one text have the same draws and masks, which a model evaluates once.
    """
    labels = predicted_labels(batch, threshold)
    texts = [text for text, own in enumerate(labels) for _ in own]
    if not texts:
        return None, []
    spec: list[int] = [label for own in labels for label in own]
    full, classes = batch.full[texts], batch.model.classes
    known = {
        key._replace(text=row): logits
        for row, text in enumerate(texts)
        for key, logits in batch.evaluations.logits.items()
        if key.text == text
    }
    several = replace(
        batch,
        encoding=batch.encoding.select(texts),
        full=full,
        target=resolve_target(spec, batch.target.of, full, classes, batch.model.multi_label),
        evaluations=Evaluations(known),
        threshold=threshold,
        extended=tuple(batch.extended[text] for text in texts),
    )
    return several, texts
