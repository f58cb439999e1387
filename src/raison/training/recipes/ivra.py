"""Fine-tuning of a model on its task, and training of a model to explain itself (IvRA)."""

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from raison.core.capabilities.attention import ReadableAttention
from raison.core.errors import InputError, UnsupportedError
from raison.core.model import WITHOUT_CLASSES, LanguageModel
from raison.core.registry import label_of, name_of
from raison.core.targets.outputs import PROBABILITIES
from raison.data.dataset import Dataset
from raison.data.digest import dataset_digest
from raison.jobs import disk
from raison.jobs.folder import FINE_TUNING, IVRA, refuse_others
from raison.jobs.identity import DATA, SETTINGS, Identity, digest_of, training_in
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.places.spans import answer_tokens
from raison.models.derived import explainers
from raison.models.derived.attention_explainer import HeadShape, new_explainer
from raison.models.derived.belonging import marks_of
from raison.models.derived.identity import base_identity, identity_of
from raison.models.derived.low_rank import LowRank, add_low_rank, merge_low_rank
from raison.models.derived.student import new_answering_student, new_student
from raison.models.derived.trained_attention import AttentionCard, write
from raison.models.loading.load import load
from raison.models.loading.pretrained import moved
from raison.models.loading.ready_made import base_weights, zoo
from raison.models.stack.eval_mode import drawing, quiet
from raison.training.loop.trainer import Evaluation, History, StepDecay, TrainSettings, fit
from raison.training.objectives.task_and_criteria import TaskAndCriteria
from raison.training.preparation.data_leakage import KNOWN, check_apart, known_to, learned_by
from raison.training.preparation.majority_baseline import check_learned
from raison.training.preparation.masks import RowBatches
from raison.training.preparation.samples import split
from raison.training.recipes.card import TrainingCall, determining, provenance_of
from raison.training.recipes.classifier import labels_of
from raison.training.self_explaining.reading import Labelled, SelfExplaining
from raison.training.self_explaining.simulation import Lessons, Simulation, SimulationPlan, chosen_rows
from raison.training.self_explaining.texts import (
    ACCURACY,
    TOGETHER,
    TaskTexts,
    TaughtTexts,
    accuracy,
    curves,
    scores_of,
)
from raison.training.settings.ivra import DECAY_EPOCHS, FineTuneSettings, IvraSettings

CHECKPOINT = "training.checkpoint"
CARD = "fine_tuned.json"
HEADS = ("classifier", "score", "qa_outputs", "lm_head", "pooler")
"""Layers whose weights are all trained, while the others get low-rank matrices."""
EXPLAINER = "network.explainer."
STUDENT_TOKENS, LONGEST = 256, 512
"""Maximum number of tokens of a text that a student reads; for a question with its context, if the model states no
limit.
"""
DEVELOPMENT = 0.1
"""Share of the data that is held out by default."""


@dataclass(frozen=True, slots=True)
class _IvraTraining:
    settings: FineTuneSettings | IvraSettings
    model: Classifier
    train: Labelled
    judged: Labelled
    out: Path
    identity: Identity
    data: tuple[Dataset, ...]
    """The data sets that the texts were drawn from."""


def fine_tune(
    base: str, data: Dataset, out: Path, settings: FineTuneSettings, dev: Dataset | None = None
) -> dict[str, Any]:
    """Fine-tune a base model (a name, or a folder) with a new head on a task; save it as a Hugging Face checkpoint.

    `data.labels` are the classes; data with answers in their texts make a question answering model. Returns the
    measurements on the held-out texts. A killed run resumes from its checkpoint in `out`; a finished one is not
    repeated. Raises InputError, LoadError, and DataError for a folder that holds anything else.
    """
    call = TrainingCall.now()
    refuse_others(out, FINE_TUNING)
    check_apart([data.name], [dev])
    folder = base_weights.located(base, settings.progress)
    model = _fresh(folder, data, dev, settings.seed)
    job = _job(model, data, dev, out, settings)
    job = replace(job, identity={**job.identity, **base_identity(base)})
    with training_in(out, FINE_TUNING, job.identity):
        # A kill may have happened between writing the card and removing the checkpoint.
        card = _card_of(out) or _fine_tuned(job, base, call)
        disk.remove(out / CHECKPOINT)
    return card


def _card_of(out: Path) -> dict[str, Any] | None:
    """The card of a finished model; None for any other folder."""
    return dict(json.loads((out / CARD).read_text(encoding="utf-8"))) if (out / CARD).exists() else None


def _fine_tuned(job: _IvraTraining, base: str, call: TrainingCall) -> dict[str, Any]:
    """Train and save the model, and measure it."""
    evaluation = Evaluation(lambda _module: {ACCURACY: accuracy(job.model, job.judged)})
    history = fit(_plan(job), TaskTexts(job.model, job.train), _batches(job), TaskAndCriteria(), evaluation)
    card = {
        "base": base,
        "accuracy": round(accuracy(job.model, job.judged), 4),
        "settings": determining(job.settings),
        "history": curves(history.scores, history.steps, call.seconds),
    }
    _save_model(job.model, job.out)
    # Last: a model with a card is a finished one.
    disk.write_whole(job.out / CARD, json.dumps(card, indent=1, ensure_ascii=False) + "\n")
    return card


def train_ivra(
    model: LanguageModel,
    data: Dataset,
    out: Path,
    settings: IvraSettings,
    dev: Dataset | None = None,
    command: str = "",
) -> AttentionCard:
    """Train a copy of a fine-tuned model to explain itself, and save it to `out` as a Hugging Face checkpoint.

    The explainer is saved with it (out/ivra or out/smat). The held-out texts are taken from `dev`, or otherwise from
    `data`. The model itself and the random state are unchanged afterwards. A killed run resumes from its checkpoint in
    `out`. Raises InputError, UnsupportedError or LoadError before anything is trained.
    """
    call = TrainingCall.now(command)
    settings.created()
    refuse_others(out, IVRA)
    check_apart([data.name, *learned_by(model.name)], [data, dev])
    copied = trainable_copy(model)
    job = _job(copied, data, dev, out, settings)
    job = replace(job, identity={**job.identity, **identity_of(model)})
    _check_scored(settings, len(job.judged.encoding))
    network = _network(job, settings)
    known = scores_of(copied, job.judged)
    if settings.above_chance and known is not None:
        check_learned(model.name, known)
    with training_in(out, IVRA, job.identity):
        card = _trained(job, network, settings, model.name, call)
        write(out / settings.form, card, network.explainer)
        disk.remove(out / CHECKPOINT)
    return card


def _check_scored(settings: IvraSettings, judged: int) -> None:
    """InputError for a criterion that has no score on the validation texts, which would not decide what is kept."""
    largest = min(settings.batch_size, judged)
    for criterion in settings.created():
        if largest < criterion.fewest_scored:
            raise InputError(
                f"{name_of(criterion)} has no score on {judged} held-out texts in batches of {settings.batch_size}: it "
                f"compares at least {criterion.fewest_scored} of a batch (--validation, --batch-size)."
            )


def _trained(
    job: _IvraTraining, network: SelfExplaining, settings: IvraSettings, source: str, call: TrainingCall
) -> AttentionCard:
    """Train and save the model; `source` is the name of the model that it is a copy of."""
    model, criteria = job.model, settings.created()
    before = accuracy(model, job.judged)
    student = _simulation(job, network, settings) if any(c.trains_student for c in criteria) else None
    texts = TaughtTexts(network, job.train, job.judged, student)
    texts.states = any(criterion.reads_states for criterion in criteria)
    history = _fit(job, texts, settings)
    after, learned = accuracy(model, job.judged), scores_of(model, job.judged)
    _save_model(model, job.out)
    return AttentionCard(
        design=settings.design,
        shape=HeadShape.of(model, job.judged.encoding),
        **marks_of(model) | {"model": str(job.out)},
        criteria=tuple(label_of(criterion) for criterion in criteria),
        history={
            **curves(history.scores, history.steps, call.seconds),
            "coefficients": asdict(network.explainer.multiples()),
        },
        provenance={
            "from": source,
            "accuracy": {"before": round(before, 4), "after": round(after, 4)},
            "f1": None if learned is None else learned.to_dict(model.classes),
            KNOWN: known_to(source, job.data[-1]),
            **provenance_of(job.data, settings, call),
        },
    )


def _fresh(folder: Path, data: Dataset, dev: Dataset | None, seed: int) -> Classifier:
    if any(row.answers for row in data.rows):
        model, tokenizer = zoo.fresh_span_model(folder, seed)
    else:
        model, tokenizer = zoo.fresh_classifier(folder, labels_of(data, dev), seed)
    return _as_trainable(load(model, tokenizer))


def trainable_copy(model: LanguageModel) -> Classifier:
    """A copy to train, in single precision. Raises UnsupportedError for models that cannot be trained."""
    trainable = _as_trainable(model)
    with quiet():
        copied = copy.deepcopy(trainable)
    copied.core.float()
    return copied


def _as_trainable(model: object) -> Classifier:
    name = model.name if isinstance(model, LanguageModel) else type(model).__name__
    if not isinstance(model, Classifier):
        raise UnsupportedError(f"cannot train {name}", ["it neither classifies texts nor extracts answers from them"])
    explainers.check_whole_texts(model, "IvRA")
    reasons = []
    if model.outputs not in PROBABILITIES:
        reasons.append(WITHOUT_CLASSES)
    if model.multi_label:
        reasons.append("it decides on each label separately, and the criteria need a single prediction")
    if not model.offers(ReadableAttention):
        reasons.append("its attention cannot be read, and the explanation is computed from it")
    if model.model is not model.core:
        reasons.append("it is wrapped by adapters: merge them first (model.merge_and_unload())")
    if reasons:
        raise UnsupportedError(f"cannot train {name} to explain itself", reasons)
    return model


def _job(
    model: Classifier,
    data: Dataset,
    dev: Dataset | None,
    out: Path,
    settings: FineTuneSettings | IvraSettings,
) -> _IvraTraining:
    # Before rows are drawn: a number must be the same class in all of them.
    data = data.counted_with(dev)
    dev = None if dev is None else dev.counted_with(data)
    judged_by = _judged_by(data, dev, settings)
    learned_from = settings.texts or (len(data) - (0 if dev is not None else judged_by))
    train, held_out = split(data, dev, learned_from, judged_by, settings.seed)
    learned, judged = _labelled(model, train), _labelled(model, held_out)
    make_trainable(model.core, settings.rank, settings.seed)
    identity = {
        DATA: digest_of([dataset_digest(train), dataset_digest(held_out)]),
        SETTINGS: digest_of(determining(settings)),
    }
    return _IvraTraining(settings, model, learned, judged, out, identity, (data,) if dev is None else (data, dev))


def _network(job: _IvraTraining, settings: IvraSettings) -> SelfExplaining:
    """The model with a new explainer of its attention."""
    explainer = new_explainer(HeadShape.of(job.model, job.judged.encoding), settings.design)
    return SelfExplaining(job.model, explainer.to(job.model.device), settings.over)


def _judged_by(data: Dataset, dev: Dataset | None, settings: FineTuneSettings | IvraSettings) -> int:
    """The number of validation texts."""
    if settings.validation is not None:
        return settings.validation
    return len(dev) if dev is not None else max(1, round(DEVELOPMENT * len(data)))


def _labelled(model: Classifier, data: Dataset) -> Labelled:
    encoding = model.encode(data.texts, "token", True)
    if model.head.in_place:
        return Labelled(encoding, answer_tokens(encoding, data.answers))
    return Labelled(encoding, torch.tensor(data.class_indices(model.classes))[:, None])


def make_trainable(core: PreTrainedModel, rank: int | None, seed: int) -> None:
    """Choose what is trained: everything but the embeddings, or low-rank matrices (drawn by the seed) and the head."""
    if rank is None:
        core.requires_grad_(True)
    else:
        device = next(core.parameters()).device
        # New matrices are random; the caller's generator must not advance.
        with drawing(seed):
            add_low_rank(core, rank, HEADS)
        if not any(isinstance(module, LowRank) for module in core.modules()):
            raise InputError(
                f"{type(core).__name__} has no linear layers to put low-rank matrices into: train all its weights "
                "(--rank 0)."
            )
        moved(core, device)
        for name, parameter in core.named_parameters():
            parameter.requires_grad_(any(head in name for head in HEADS) or parameter.requires_grad)
    core.get_input_embeddings().requires_grad_(False)


def _simulation(job: _IvraTraining, network: SelfExplaining, settings: IvraSettings) -> Simulation:
    model = job.model
    answers = model.head.in_place
    if answers:
        # As many tokens as the model reads: an answer must not be cut off.
        student = new_answering_student(settings.student, model.max_tokens or LONGEST, settings.seed)
    else:
        student = new_student(settings.student, model.classes, STUDENT_TOKENS, settings.seed)
    moved(student.core, model.device)
    make_trainable(student.core, None, settings.seed)
    chosen = chosen_rows(len(job.train.encoding), settings.student_share, settings.seed)
    taught = job.train.encoding.select(chosen.tolist())
    read = student.encode(taught.texts, "token", True)
    if answers and not torch.equal(read.input_ids, taught.input_ids):
        raise InputError(
            f"the student {settings.student} does not read the same tokens as {model.name}, and answers are given as "
            "positions of tokens: choose a student with the model's tokenizer (--student)."
        )
    explainer = new_explainer(HeadShape.of(student, read), settings.design).to(student.device)
    skeleton = SelfExplaining(student, explainer, settings.over)
    plan = SimulationPlan(settings.student_rate, settings.student_batch, settings.roll_back)
    return Simulation(skeleton, Lessons.of(taught, read), network, plan)


def _batches(job: _IvraTraining) -> RowBatches:
    return RowBatches(job.train.encoding.lengths, job.settings.batch_size, job.settings.seed)


def _plan(job: _IvraTraining) -> TrainSettings:
    """The settings that fine-tuning and training share."""
    settings = job.settings
    return TrainSettings(
        epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        seed=settings.seed,
        keep_best=True,
        checkpoint=job.out / CHECKPOINT,
        checkpoint_every=len(_batches(job)),
        identity=digest_of(job.identity),
        progress=settings.progress,
    )


def _fit(job: _IvraTraining, texts: TaughtTexts, settings: IvraSettings) -> History:
    batches = _batches(job)
    plan = replace(
        _plan(job),
        warmup=0.0,
        decay=StepDecay(settings.decay, DECAY_EPOCHS),
        factors={EXPLAINER: settings.coefficient_rate},
    )
    criteria = settings.weighted()

    def score(_module: nn.Module) -> Mapping[str, float]:
        return texts.scores([criterion for criterion, _ in criteria], settings.batch_size)

    evaluation = Evaluation(score, every=max(1, math.ceil(len(batches) / settings.checks)), kept=(TOGETHER,))
    return fit(plan, texts, batches, TaskAndCriteria(criteria), evaluation)


def _save_model(model: Classifier, out: Path) -> None:
    merge_low_rank(model.core)
    with quiet(), disk.whole_files(out) as part:
        model.core.save_pretrained(part, safe_serialization=True)
        model.tokenizer.save_pretrained(part)
