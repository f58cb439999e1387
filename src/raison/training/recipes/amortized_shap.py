"""Training of an attribution model that predicts Shapley values: estimates of many texts first, then a regression."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from raison.core.capabilities.passes import Passes
from raison.core.errors import DataError, InputError, UnsupportedError
from raison.core.model import LanguageModel, asked_of, check_classes
from raison.core.targets.target import probabilities
from raison.data.dataset import Dataset
from raison.explaining.attribution import scores_of
from raison.explaining.batch import BATCH, prepare
from raison.explaining.settings import Settings
from raison.jobs import disk
from raison.jobs.folder import AMORTIZED_SHAP, read_marker, refuse_others
from raison.jobs.identity import (
    CONFIGURATION,
    IDENTITY,
    SETTINGS,
    TOKENIZER,
    WEIGHTS,
    Identity,
    differing,
    digest_of,
    of_several,
    training_in,
)
from raison.jobs.store import RecordStore
from raison.methods.kernel_shap import KernelShap
from raison.models.derived import explainers
from raison.models.derived.amortized import KIND, AmortizedCard, new_predictor, write
from raison.models.derived.belonging import marks_of
from raison.progress import progress_bar
from raison.training.loop.trainer import Evaluation, History, TrainSettings, fit
from raison.training.objectives.mean_squared_error import MeanSquaredError
from raison.training.preparation.attribution_models import (
    BACKBONE,
    backbone_of,
    identity_of_training,
)
from raison.training.preparation.data_leakage import KNOWN, check_apart, known_to, learned_by
from raison.training.preparation.masks import RowBatches
from raison.training.preparation.samples import split
from raison.training.preparation.taught_values import TextsWithValues, ValueLessons
from raison.training.recipes.card import TrainingCall, determining, provenance_of
from raison.training.settings.amortized_shap import AmortizedShapSettings as AmortizedShapSettings

JOURNAL, CHECKPOINT = "values.jsonl", "training.checkpoint"
ESTIMATES = "settings of the Shapley values"
ESTIMATED = ("samples", "classes", "unit", "texts", "validation", "seed")
"""The settings that determine the values, besides `of` and `removal`; the others determine how they are learned."""
SCORE = "correlation"


@dataclass(frozen=True, slots=True)
class _AmortizedTraining:
    model: LanguageModel
    settings: AmortizedShapSettings
    backbone: str
    of: str
    removal: str
    out: Path
    identity: str

    @property
    def asked(self) -> Settings:
        """The settings of what is explained, without the class."""
        s = self.settings
        return Settings(unit=s.unit, of=self.of, removal=self.removal, seed=s.seed, truncate=True)


def train_amortized_shap(
    model: LanguageModel,
    data: Dataset,
    out: Path,
    settings: AmortizedShapSettings,
    dev: Dataset | None = None,
    command: str = "",
    values: Path | None = None,
) -> AmortizedCard:
    """Train an explainer for `model` on texts of `data`; save it to the folder `out` and return its card.

    `settings.validation` texts, of `dev` or otherwise of `data`, choose the epoch. Costs `settings.samples` passes of
    the model for each text, and then a forward and a backward pass of the attribution model per text and epoch. A
    killed run resumes after its last texts, or its last epoch, when started again with the same settings and data. The
    model, its device and the random state are unchanged afterwards.

    The Shapley values stay in `out` (values.jsonl). `values` is the folder of another training, whose values are taken
    over: its model, data and settings of the values have to be the same, but not its rank, rate or epochs.

    Raises InputError, UnsupportedError, LoadError or DataError before anything is computed.
    """
    call = TrainingCall.now(command)
    refuse_others(out, AMORTIZED_SHAP)
    check_apart([data.name, *learned_by(model.name)], [data, dev])
    backbone = _checked(model, settings)
    learned, held_out = split(data, dev, settings.texts, settings.validation, settings.seed)
    of, removal = asked_of(model, settings.of), settings.removal or model.removals[0]
    estimates = {**{name: getattr(settings, name) for name in ESTIMATED}, "of": of, "removal": removal}
    identity = {
        **identity_of_training(model, backbone, data, dev),
        ESTIMATES: digest_of(estimates),
        SETTINGS: digest_of(determining(settings)),
    }
    job = _AmortizedTraining(model, settings, backbone, of, removal, out, digest_of(identity))
    known = [] if values is None else _values_of(values, identity)
    with training_in(out, AMORTIZED_SHAP, identity):
        if not (out / JOURNAL).exists():
            RecordStore(out / JOURNAL).append(known)
        estimated = _estimated(job, [*learned.texts, *held_out.texts])
        parts = [range(len(learned)), range(len(learned), len(estimated.values))]
        card = _trained(job, [estimated.select(rows) for rows in parts], (data,) if dev is None else (data, dev), call)
        disk.remove(out / CHECKPOINT)
    return card


def _values_of(folder: Path, identity: Identity) -> list[dict[str, Any]]:
    """The estimated values of another training. Raises DataError if they are not those that this training needs."""
    known = read_marker(folder, AMORTIZED_SHAP)
    records = RecordStore(folder / JOURNAL).read().records
    if known is None or not records:
        raise DataError(
            f"{folder} has no Shapley values ({AMORTIZED_SHAP.marker} and {JOURNAL}): give the folder of another "
            "training of amortized_shap."
        )
    learning = {SETTINGS, *of_several({BACKBONE: dict.fromkeys([WEIGHTS, TOKENIZER, CONFIGURATION], "")})}
    others = [part for part in differing(known.get(IDENTITY, {}), identity) if part not in learning]
    if others:
        raise DataError(
            f"the Shapley values in {folder} are not those of this training (they differ in {', '.join(others)}): "
            "leave them out."
        )
    return list(records)


def _checked(model: LanguageModel, settings: AmortizedShapSettings) -> str:
    """The backbone. Raises all errors that can be found before a text is read."""
    explainers.check_whole_texts(model, KIND)
    check_classes(model, "an explainer of amortized_shap, which gets the class as input,")
    if not model.offers(Passes):
        raise UnsupportedError(
            f"cannot train an explainer for {model.name}",
            [model.withheld.get(Passes, "it does not expose its forward passes")],
        )
    if settings.removal is not None and settings.removal not in model.removals:
        raise InputError(
            f"{model.name} cannot remove words by '{settings.removal}': give one of {', '.join(model.removals)}."
        )
    backbone = backbone_of(model, settings.backbone)
    new_predictor(model, backbone, settings.rank)
    return backbone


def _estimated(job: _AmortizedTraining, texts: Sequence[Any]) -> TextsWithValues:
    """The Shapley values of every text; those of the journal are not computed again."""
    journal = RecordStore(job.out / JOURNAL)
    # One record for the texts of one call, because the last digits depend on the other texts of the batch: records of
    # other calls, as an older version wrote them, are not used.
    sizes = {start: len(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)}
    known = {
        record["start"]: record["texts"]
        for record in journal.read().records
        if len(record.get("texts", ())) == sizes.get(record.get("start", -1))
    }
    done = sum(map(len, known.values()))
    with progress_bar("Shapley values", len(texts), job.settings.progress, done) as advance:
        for start in sizes:
            if start not in known:
                known[start] = _values(job, texts[start : start + BATCH], start)
                journal.append([{"start": start, "texts": known[start]}])
                advance(len(known[start]))
    records = [row for start in sorted(known) for row in known[start]]
    return TextsWithValues(
        job.model.encode(texts, job.settings.unit, True),
        torch.tensor([record["probabilities"] for record in records], dtype=torch.float32),
        tuple(
            {int(index): tuple(map(float, values)) for index, values in record["values"].items()} for record in records
        ),
    )


def _values(job: _AmortizedTraining, texts: Sequence[Any], start: int) -> list[dict[str, Any]]:
    """For each text the model's probabilities, and for each chosen class the values of its units.

    The removed sets depend only on the text, so another class takes no further passes.
    """
    s, model = job.settings, job.model
    batch = prepare(model, texts, job.asked)
    shares = probabilities(batch.full, model.multi_label)
    rows: list[dict[str, Any]] = [
        {"probabilities": [round(value, 6) for value in row_shares], "values": {}} for row_shares in shares.tolist()
    ]
    chosen = [_chosen(job, index, start + n) for n, index in enumerate(batch.target.index.tolist())]
    method = KernelShap(samples=s.samples, estimator="gaussian_process")
    for indices in zip(*chosen, strict=True):
        target = replace(batch.target, index=torch.tensor(indices), against=None)
        scores = scores_of(batch.towards(target), method)
        for row, index, row_shares in zip(rows, indices, scores, strict=True):
            row["values"][str(index)] = [round(float(value), 8) for value in row_shares]
    return rows


def _chosen(job: _AmortizedTraining, predicted: int, number: int) -> list[int]:
    """The classes of a text whose values are learned, the predicted one first."""
    rng = np.random.default_rng([job.settings.seed, number])
    others = [index for index in range(len(job.model.classes)) if index != predicted]
    return [predicted, *rng.permutation(others).tolist()[: job.settings.classes - 1]]


def _trained(
    job: _AmortizedTraining, taught: Sequence[TextsWithValues], data: Sequence[Dataset], call: TrainingCall
) -> AmortizedCard:
    """Train, write the explainer and return its card; its correlation is measured with the weights as saved."""
    s, (learned, held_out) = job.settings, taught
    scale = learned.scale()
    attributor = new_predictor(job.model, job.backbone, s.rank, s.seed)
    judged = ValueLessons(attributor, held_out, scale)
    history = _fit(job, ValueLessons(attributor, learned, scale, s.half), judged, learned)
    best = history.best[SCORE]
    state = {name.removeprefix("attributor."): value for name, value in best.weights.items()}
    attributor.load_state_dict({name: value.half().float() for name, value in state.items()}, strict=False)
    card = AmortizedCard(
        **marks_of(job.model),
        backbone=job.backbone,
        rank=s.rank,
        of=job.of,
        removal=job.removal,
        unit=s.unit,
        scale=scale,
        provenance={
            KNOWN: known_to(job.model.name, data[-1]),
            **provenance_of(data, s, call),
            "correlation": {"held_out": round(judged.correlation(job.model), 4)},
            "epochs": [round(scores[SCORE], 4) for scores in history.scores],
        },
    )
    write(job.out, card, state)
    return card


def _fit(job: _AmortizedTraining, lessons: ValueLessons, judged: ValueLessons, learned: TextsWithValues) -> History:
    s = job.settings
    plan = TrainSettings(
        epochs=s.epochs,
        learning_rate=s.rate,
        seed=s.seed,
        keep_best=True,
        checkpoint=job.out / CHECKPOINT,
        identity=job.identity,
        progress=s.progress,
    )

    def score(_module: nn.Module) -> dict[str, float]:
        return {SCORE: judged.correlation(job.model)}

    batches = RowBatches(learned.encoding.lengths, s.batch_size, s.seed)
    history = fit(plan, lessons, batches, MeanSquaredError(), Evaluation(score))
    if all(math.isnan(scores[SCORE]) for scores in history.scores):
        raise InputError(
            "no validation text has values that differ: give texts of several units, or more of them (--validation)."
        )
    return history
