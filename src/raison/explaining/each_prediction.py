"""Every prediction in a text as a separate target, from one encoding and shared evaluations."""

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real

from raison.core.errors import InputError
from raison.core.inputs.parts import Given
from raison.core.model import LanguageModel
from raison.core.targets.choices import EACH, SingleTarget, for_each_text
from raison.core.targets.outputs import THRESHOLD
from raison.core.targets.target import TargetSpec, probabilities, resolve_target
from raison.explaining.batch import BATCH, Batch, prepare, prepare_encoded
from raison.explaining.settings import Settings
from raison.models.tokens.token_rows import numbered_among

_ROUNDING = 1e-12
"""How far below the threshold a probability may be: one that a function returned has been a logit in between."""


def without_threshold(given: float | None) -> None:
    """Raise InputError for a threshold, which only target="each" has."""
    if given is not None:
        raise InputError(
            "threshold= selects the labels that target='each' explains: add target='each', or leave threshold out."
        )


def threshold_of(model: LanguageModel, target: TargetSpec, given: float | None) -> float:
    """The minimum probability of explained labels.

    Raises InputError for a threshold without target="each", or where the model does not give labels.
    """
    if target != EACH:
        without_threshold(given)
        return THRESHOLD
    if model.choosing is None and model.outputs != "labels":
        kind = "one number" if model.outputs == "number" else f"one of {len(model.classes)} classes"
        raise InputError(
            "target='each' explains every label of a multi-label model, or every entity or masked word, but "
            f"{model.name} outputs {kind}: name one target, or leave it out."
        )
    if given is not None and not (isinstance(given, Real) and 0 <= given <= 1):
        raise InputError(f"threshold={given!r:.40} is not a probability: give a number from 0 to 1.")
    if given is None:
        return THRESHOLD if model.choosing is None else 0.0
    return float(given)


def batch_of_each(
    model: LanguageModel, texts: Sequence[Given], settings: Settings, threshold: float
) -> tuple[Batch | None, list[int]]:
    """A row for every prediction that reaches the threshold, and the text of each row; None if no prediction does.

    Labels come likeliest first, entities and masks in the text's order. Rows of one text have the same draws and masks,
    which a model evaluates once.
    """
    if model.choosing is None:
        return _with_labels(prepare(model, texts, replace(settings, target=None)), threshold)
    encoding = model.tokenized(texts, settings.unit, settings.truncate)
    targets = model.choosing.each(encoding, threshold)
    rows = [text for text, targets_of_text in enumerate(targets) for _ in targets_of_text]
    if not rows:
        return None, []
    flat: list[SingleTarget] = [target for targets_of_text in targets for target in targets_of_text]
    for_rows = replace(settings, target=flat)
    batch = prepare_encoded(model, [texts[row] for row in rows], encoding.select(rows), for_rows)
    return replace(batch, threshold=threshold), rows


def each_target(
    model: LanguageModel, texts: Sequence[Given], settings: Settings, threshold: float
) -> list[list[SingleTarget]]:
    """The predictions of each text that reach the threshold, as targets for a call."""
    if model.choosing is None:
        labels = predicted_labels(prepare(model, texts, replace(settings, target=None)), threshold)
        return [[*of_text] for of_text in labels]
    places = model.choosing.each(model.tokenized(texts, settings.unit, settings.truncate), threshold)
    return [[*of_text] for of_text in places]


def without_prediction(model: LanguageModel, texts: Sequence[Given], settings: Settings) -> list[int]:
    """The numbers of texts that are explained by what the model predicts in them, where it predicts nothing.

    Takes a pass per text of a model that may predict nothing, such as one that finds entities. Raises InputError for a
    wrong number of targets.
    """
    targets = for_each_text(settings.target, len(texts))
    choosing = model.choosing
    if choosing is None or not choosing.sought:
        return []
    asked = [row for row, target in enumerate(targets) if target is None]
    empty = []
    for start in range(0, len(asked), BATCH):
        rows = asked[start : start + BATCH]
        with numbered_among(rows, len(texts)):
            encoding = model.tokenized([texts[row] for row in rows], settings.unit, settings.truncate)
        found = choosing.each(encoding, 0.0)
        empty += [row for row, predictions in zip(rows, found, strict=True) if not predictions]
    return empty


def sought_by(model: LanguageModel) -> str:
    """What the model seeks in a text and may not find, such as "entity"; "" for one that predicts in any text."""
    return "" if model.choosing is None else model.choosing.sought


def predicted_labels(batch: Batch, threshold: float) -> list[list[int]]:
    """The numbers of each text's labels that reach the threshold, the most probable first."""
    shares = probabilities(batch.full.double(), batch.model.multi_label)
    order = shares.argsort(descending=True, stable=True).tolist()
    return [
        [label for label in ranked if of_text[label] >= threshold - _ROUNDING]
        for ranked, of_text in zip(order, shares, strict=True)
    ]


def _with_labels(batch: Batch, threshold: float) -> tuple[Batch | None, list[int]]:
    labels = predicted_labels(batch, threshold)
    texts = [text for text, of_text in enumerate(labels) for _ in of_text]
    if not texts:
        return None, []
    spec: list[int] = [label for of_text in labels for label in of_text]
    model, several = batch.model, batch.select(texts)
    target = resolve_target(spec, batch.target.of, several.full, model.classes, model.multi_label)
    return replace(several.towards(target), threshold=threshold), texts
