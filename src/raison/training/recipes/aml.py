"""Training of an attribution model by attributive masking: the losses' weights by a search, then the model itself."""

import math
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import InputError, UnsupportedError
from raison.core.metric import Metric
from raison.core.model import LanguageModel, check_classes
from raison.core.registry import label_of
from raison.data.dataset import Dataset
from raison.explaining.batch import Batch as Prepared
from raison.explaining.batch import prepare
from raison.explaining.measuring import AnyMetric, create_metrics
from raison.explaining.selection import check_selection
from raison.explaining.settings import Settings
from raison.jobs import disk
from raison.jobs.folder import AML, refuse_others
from raison.jobs.identity import SETTINGS, Identity, digest_of, training_in
from raison.jobs.store import RecordStore
from raison.judging.evaluate import check_metrics
from raison.masking.substitutes import Substitutes, masking_name
from raison.methods.aml import Aml
from raison.models.derived import explainers, trained_masks
from raison.models.derived.attributor import Attributor
from raison.models.derived.belonging import marks_of
from raison.models.derived.explainers import new_attributor
from raison.models.derived.trained_masks import MaskCard, MaskGoal
from raison.numerics.losses.attributive_masking import LossWeights
from raison.numerics.measures.class_scores import class_scores
from raison.training.loop.checkpoint import Best
from raison.training.loop.trainer import Evaluation, History, TrainSettings, fit
from raison.training.loop.tuning import ReportScores, SearchSettings, TuningTrial, best, search
from raison.training.objectives.attributive_masking import AttributiveMasking
from raison.training.preparation.attribution_models import backbone_of, identity_of_training
from raison.training.preparation.data_leakage import KNOWN, check_apart, known_to, learned_by
from raison.training.preparation.majority_baseline import check_learned
from raison.training.preparation.masks import MaskedTexts, RowBatches, afresh, part_of
from raison.training.preparation.samples import split, stratified_rows
from raison.training.recipes.card import TrainingCall, determining, provenance_of
from raison.training.settings.aml import LOSSES, AmlSettings

JOURNAL, CHECKPOINT = "search.jsonl", "training-{}.checkpoint"
ABSENT = dict.fromkeys(LOSSES, 0.0)
PATIENCE = 2
"""Evaluations without any gain after which a trial of the search ends; as in the published code."""


@dataclass(frozen=True, slots=True)
class _AmlTraining:
    model: LanguageModel
    settings: AmlSettings
    metrics: tuple[Metric, ...]
    backbone: str
    substitutes: Substitutes
    train: Prepared
    tried: Prepared
    """Training texts of the trials of the search."""
    validation: Prepared
    data: tuple[Dataset, ...]
    """The data sets that the texts were drawn from."""
    out: Path
    identity: Identity

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(label_of(metric) for metric in self.metrics)

    def attributor(self) -> Attributor:
        """A new attribution model with the same initial weights each time."""
        s = self.settings
        learned = self.substitutes.masking == "learned"
        return new_attributor(self.model, self.backbone, s.rank, learned=learned, seed=s.seed)


def train_aml(
    model: LanguageModel, data: Dataset, out: Path, settings: AmlSettings, dev: Dataset | None = None, command: str = ""
) -> MaskCard:
    """Train an explainer for `model` on texts of `data`; save it to the folder `out` and return its description.

    `settings.validation` texts, of `dev` or otherwise of `data`, choose the losses' weights and the checkpoint for each
    metric. Metrics for which the same weights are best share one training. Labels, if any, only ensure that every class
    is present in proportion. A killed run resumes when started again with the same settings and data. The model, its
    device and the random state are unchanged afterwards.

    Raises InputError, UnsupportedError or LoadError before anything is trained, and InputError if every trial of the
    search diverges.
    """
    call = TrainingCall.now(command)
    refuse_others(out, AML)
    check_apart([data.name, *learned_by(model.name)], [data, dev])
    job = _prepared(model, data, out, settings, dev)
    with training_in(out, AML, job.identity):
        card = _searched_and_trained(job, call)
        for leftover in (out / JOURNAL, *sorted(out.glob(CHECKPOINT.format("*")))):
            disk.remove(leftover)
    return card


def _searched_and_trained(job: _AmlTraining, call: TrainingCall) -> MaskCard:
    settings = job.settings
    trials = () if settings.weights is not None else _search(job)
    chosen = {name: _weights(job, trials, name) for name in job.names}
    moments: dict[str, Best] = {}
    for weights in dict.fromkeys(chosen.values()):
        moments |= _trained(job, weights, [name for name in job.names if chosen[name] == weights])
    provenance = {
        KNOWN: known_to(job.model.name, job.data[-1]),
        **provenance_of(job.data, settings, call),
        "trials": [_plain(trial) for trial in trials],
    }
    return _saved(job, chosen, moments, provenance)


def _prepared(
    model: LanguageModel, data: Dataset, out: Path, settings: AmlSettings, dev: Dataset | None
) -> _AmlTraining:
    """Checks everything before training; every text is predicted once."""
    explainers.check_whole_texts(model, "AML")
    metrics = create_metrics(settings.metrics)
    _check_metrics(model, metrics)
    check_classes(model, "an explainer of AML, which is trained to keep the prediction,")
    if not model.offers(WordEmbeddings):
        why = model.withheld.get(WordEmbeddings, "it does not accept embeddings: texts cannot be masked in part")
        raise UnsupportedError(f"cannot train an explainer for {model.name}", [why])
    substitutes = Substitutes.of(model, masking_name(model, settings.masking), settings.filler)
    backbone = backbone_of(model, settings.backbone)
    # A backbone that cannot be used is refused before the texts are read.
    new_attributor(model, backbone, settings.rank, learned=False)
    train, held_out = split(data, dev, settings.texts, settings.validation, settings.seed)
    held_out = held_out.counted_with(data)
    encoded = Settings(unit=settings.unit, truncate=True)
    validation = prepare(model, held_out.texts, encoded)
    if settings.above_chance:
        _check_learned(validation, held_out)
    _check_classes(validation)
    learned = prepare(model, train.texts, encoded)
    tried = stratified_rows(train, min(settings.search_texts, len(train)), settings.seed)
    identity = {
        **identity_of_training(model, backbone, data, dev),
        # A search may be made longer.
        SETTINGS: digest_of(determining(replace(settings, trials=1))),
    }
    return _AmlTraining(
        model=model,
        settings=settings,
        metrics=tuple(metric for metric in metrics if isinstance(metric, Metric)),
        backbone=backbone,
        substitutes=substitutes,
        train=learned,
        tried=part_of(learned, tried),
        validation=validation,
        data=(data,) if dev is None else (data, dev),
        out=out,
        identity=identity,
    )


def _check_metrics(model: LanguageModel, metrics: Sequence[AnyMetric]) -> None:
    if not metrics or len({label_of(metric) for metric in metrics}) < len(metrics):
        raise InputError("an explainer needs at least one metric, and each only once: --metrics NAME,NAME.")
    check_selection(metrics, [Aml(steps=1)])
    check_metrics(model, metrics, has_rationales=False, texts=1)


def _check_classes(validation: Prepared) -> None:
    predicted = set(validation.target.index.tolist())
    if len(predicted) == 1:
        name = validation.model.classes[predicted.pop()]
        raise InputError(
            f"the model predicts '{name}' on all {len(validation.encoding)} validation texts: what matters for other "
            "classes cannot be evaluated. Give texts of every class (--dev), or more of them (--validation)."
        )


def _check_learned(validation: Prepared, held_out: Dataset) -> None:
    """InputError for a model at chance. Texts without labels, or with labels of another task, cannot show this."""
    try:
        labels = held_out.class_indices(validation.model.classes)
    except InputError as error:
        warnings.warn(f"not tested whether {validation.model.name} has learned its task: {error}", stacklevel=4)
        return
    predicted = validation.target.index.tolist()
    check_learned(validation.model.name, class_scores(predicted, labels, len(validation.model.classes)))


def _weights(job: _AmlTraining, trials: Sequence[TuningTrial], metric: str) -> LossWeights:
    """The losses' weights for a metric: given, or those of its best trial."""
    given, without = job.settings.weights, job.settings.without
    if given is None:
        return LossWeights(**{**ABSENT, **best(trials, metric).weights})
    return replace(given, **{without: 0.0}) if without else given


def _search(job: _AmlTraining) -> tuple[TuningTrial, ...]:
    """Trials of the losses' weights, one search for all metrics."""
    s = job.settings

    def run(weights: Mapping[str, float], report: ReportScores) -> None:
        evaluation = Evaluation(
            _scorer(job.metrics),
            patience=PATIENCE,
            stop=lambda scores: report(scores[-1]),
        )
        plan = TrainSettings(epochs=min(s.search_epochs, s.epochs), progress=s.progress)
        _fit(job, job.tried, LossWeights(**{**ABSENT, **weights}), plan, evaluation)

    space = {name: (0.0, 1.0) for name in LOSSES if name != s.without}
    plan = SearchSettings(
        trials=s.trials, seed=s.seed, journal=job.out / JOURNAL, identity=digest_of(job.identity), progress=s.progress
    )
    try:
        return search(plan, space, job.names, run)
    except InputError:
        _forget_failures(job)
        raise


def _forget_failures(job: _AmlTraining) -> None:
    """Remove the journal if every trial failed: it would prevent a search with better settings."""
    journal = job.out / JOURNAL
    records = RecordStore(journal).read().records
    of_this_job = bool(records) and records[0].get("search") == digest_of(job.identity)
    if of_this_job and all(record.get("state") == "failed" for record in records[1:]):
        disk.remove(journal)


def _trained(job: _AmlTraining, weights: LossWeights, names: Sequence[str]) -> dict[str, Best]:
    """The best evaluation for each of the metrics, with the attribution model's weights."""
    metrics = [metric for metric in job.metrics if label_of(metric) in names]
    # A longer search may choose other weights: their training begins anew.
    which = digest_of([asdict(weights), list(names)])
    plan = TrainSettings(
        epochs=job.settings.epochs,
        checkpoint=job.out / CHECKPOINT.format(which),
        keep_best=True,
        identity=f"{digest_of(job.identity)}, {names}",
        progress=job.settings.progress,
    )
    return _fit(job, job.train, weights, plan, Evaluation(_scorer(metrics))).best


def _scorer(metrics: Sequence[Metric]) -> Callable[[nn.Module], dict[str, float]]:
    """A function that scores the masks of a run by these metrics."""

    def scores(module: nn.Module) -> dict[str, float]:
        assert isinstance(module, MaskedTexts)
        return module.scores(metrics)

    return scores


def _fit(
    job: _AmlTraining, texts: Prepared, weights: LossWeights, plan: TrainSettings, evaluation: Evaluation
) -> History:
    """Train a new attribution model on the texts; `evaluation.score` sees it on the validation texts."""
    s, attributor = job.settings, job.attributor()
    module = MaskedTexts(attributor, texts, job.substitutes, s.merge, s.half)
    judged = _judged(job, attributor)
    batches = RowBatches(texts.encoding.lengths, s.batch_size, s.seed)
    plan = replace(
        plan,
        learning_rate=s.rate,
        warmup=0.0,
        clip=math.inf,
        seed=s.seed,
        schedule_epochs=s.epochs,
    )

    def score(_module: nn.Module) -> Mapping[str, float]:
        # A trial starts over after a kill. A resumed run lacks the cached evaluations from before: the texts would be
        # in other batches, and the last digits of their logits would differ.
        return evaluation.score(judged if plan.checkpoint is None else _judged(job, attributor))

    watched = replace(evaluation, score=score, every=max(1, len(batches) // s.checks))
    return fit(plan, module, batches, AttributiveMasking(weights, s.size), watched)


def _judged(job: _AmlTraining, attributor: Attributor) -> MaskedTexts:
    """The attribution model on the validation texts, with only their predictions computed so far."""
    return MaskedTexts(attributor, afresh(job.validation), job.substitutes, job.settings.merge)


def _file_of(metric: str, taken: Collection[str]) -> str:
    stem = re.sub(r"[^a-z0-9_]+", "-", metric).strip("-")
    names = (f"{stem}{number}.safetensors" for number in ("", *(f"-{n}" for n in range(2, len(taken) + 3))))
    return next(name for name in names if name not in taken)


def _plain(trial: TuningTrial) -> dict[str, Any]:
    """The trial for JSON, with null in place of NaN."""
    reports = [{name: value if math.isfinite(value) else None for name, value in r.items()} for r in trial.reports]
    scores = {name: value if math.isfinite(value) else None for name, value in trial.scores.items()}
    return asdict(trial) | {"scores": scores, "reports": reports}


def _saved(
    job: _AmlTraining, chosen: Mapping[str, LossWeights], moments: Mapping[str, Best], provenance: dict[str, Any]
) -> MaskCard:
    """Write the explainer. Its validation scores are measured with the weights as they are saved."""
    s, attributor = job.settings, job.attributor()
    judged = _judged(job, attributor)
    goals: dict[str, MaskGoal] = {}
    states: dict[str, dict[str, Tensor]] = {}
    for metric in job.metrics:
        name = label_of(metric)
        best_moment = moments[name]
        same = [other for other, goal in goals.items() if moments[other].weights is best_moment.weights]
        file = goals[same[0]].file if same else _file_of(name, states)
        states[file] = {key.removeprefix("attributor."): value for key, value in best_moment.weights.items()}
        attributor.load_state_dict({key: value.half().float() for key, value in states[file].items()}, strict=False)
        validation = judged.scores([metric])[name]
        if not metric.higher_is_better:
            validation = -validation
        goals[name] = MaskGoal(file, asdict(chosen[name]), s.rate, round(validation, 5), best_moment.step)
    card = MaskCard(
        **marks_of(job.model),
        backbone=job.backbone,
        rank=s.rank,
        masking=job.substitutes.masking,
        filler=s.filler,
        size=s.size,
        merge=s.merge,
        unit=s.unit,
        goals=goals,
        provenance=provenance,
    )
    trained_masks.write(job.out, card, states)
    return card
