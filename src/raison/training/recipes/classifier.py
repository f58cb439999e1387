"""Fine-tuning of a sequence classifier by low-rank adapters (LoRA)."""

import json
import os
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import InputError
from raison.data.dataset import Dataset, Row
from raison.data.digest import dataset_digest
from raison.jobs import disk
from raison.jobs.folder import CLASSIFIER, refuse_others
from raison.jobs.identity import DATA, SETTINGS, digest_of, training_in
from raison.models.derived.identity import base_identity
from raison.models.loading.ready_made import base_weights, zoo
from raison.models.stack.eval_mode import drawing, half_precision, quiet
from raison.numerics.measures.class_scores import ClassScores, class_scores
from raison.training.loop.batches import TokenBatches, readable, tokenize
from raison.training.loop.trainer import Evaluation, History, TrainSettings, fit
from raison.training.objectives.cross_entropy import CrossEntropy
from raison.training.preparation.data_leakage import check_apart
from raison.training.recipes.card import (
    Outcome,
    Setup,
    TrainingCall,
    base_entry,
    determining,
    final_loss,
    make_card,
    write_card,
)
from raison.training.settings.classifier import ClassifierSettings as ClassifierSettings

CHECKPOINT_FILE = "training.checkpoint"


@dataclass(frozen=True, slots=True)
class Splits:
    """The data: for training, for the final accuracy, and for selecting the best epoch."""

    train: Dataset
    test: Dataset
    dev: Dataset | None = None

    def named(self) -> dict[str, Dataset]:
        """The existing splits."""
        splits = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: split for name, split in splits.items() if split is not None}


@dataclass(frozen=True, slots=True)
class _LoraTraining:
    base: str
    data: Splits
    labels: tuple[str, ...]
    out: Path
    settings: ClassifierSettings
    identity: str = ""


class ClassLogits(nn.Module):
    """The trainer's view of a classifier: inputs by name in, logits out."""

    def __init__(self, model: nn.Module, half: bool) -> None:
        super().__init__()
        self.model = model
        self.half_precision = half

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        device = inputs["input_ids"].device.type
        with half_precision(device, self.half_precision):
            logits: Tensor = self.model(**inputs).logits
        return logits.float()


def train_classifier(
    base: str, data: Splits, out: Path, settings: ClassifierSettings, command: str = ""
) -> dict[str, Any]:
    """Train an adapter for `base` (a base model's name or a folder) and save it to the folder `out`.

    Writes the adapter in PEFT's format (safetensors, float16), card.json and README.md, and returns the card. Its
    accuracies are those of the saved adapter, loaded again. A killed run resumes from its last checkpoint in `out` when
    started again with the same settings and data. The test set is used once, at the end.

    Raises InputError on invalid labels or settings, LoadError if the base cannot be loaded.
    """
    call = TrainingCall.now(command)
    refuse_others(out, CLASSIFIER)
    check_apart([data.train.name], [data.test, data.dev])
    # Before rows are drawn: a number must be the same class in all of them.
    every = data.named().values()
    data = Splits(**{name: split.counted_with(*every) for name, split in data.named().items()})
    test = replace(data.test, rows=_chosen(data.test.rows, settings.test_limit, settings.seed))
    data = replace(data, test=test)
    labels = checked_names(settings.labels) if settings.labels else labels_of(data.train, data.test, data.dev)
    job = _LoraTraining(base, data, labels, out, settings)
    for split in data.named().values():
        split.class_indices(job.labels)
    folder = Path(base) if os.path.isdir(base) else base_weights.fetch(base, settings.progress)
    identity = {
        **base_identity(base),
        DATA: digest_of([[name, dataset_digest(split)] for name, split in data.named().items()]),
        SETTINGS: digest_of([job.labels, determining(settings)]),
    }
    with training_in(out, CLASSIFIER, identity):
        return _trained(replace(job, identity=digest_of(identity)), folder, call)


def _trained(job: _LoraTraining, folder: Path, call: TrainingCall) -> dict[str, Any]:
    """Train, save, measure what was saved."""
    settings = job.settings
    rows = _chosen(job.data.train.rows, settings.limit, settings.seed)
    model, tokenizer = zoo.fresh_classifier(folder, job.labels, settings.seed)
    longest = readable(model.config, tokenizer, settings.max_tokens)
    job = replace(job, settings=replace(settings, max_tokens=longest))
    module = adapted(model, settings)
    losses = _fit(job, rows, module, tokenizer).losses
    save_adapter(job.out, module.model, base_entry(job.base)["name"])
    scores = _saved_scores(job, folder)
    outcome = Outcome(len(rows), final_loss(losses), call.seconds, scores)
    card = make_card(Setup(base_entry(job.base), job.labels, job.data.named(), _noted(settings), call.command), outcome)
    write_card(job.out, card)
    disk.remove(job.out / CHECKPOINT_FILE)
    return card


def accuracy(model: nn.Module, batches: TokenBatches) -> float:
    """Share of rows whose strongest class is the label. Leaves the model in evaluation mode."""
    return measured(model, batches).accuracy


def measured(model: nn.Module, batches: TokenBatches) -> ClassScores:
    """Scores of the strongest classes against the labels. Leaves the model in evaluation mode."""
    model.eval()
    predicted: list[int] = []
    labels: list[int] = []
    classes = 0
    with torch.no_grad():
        for _, batch in batches.in_order():
            logits = model(**batch.inputs).logits
            predicted += logits.argmax(-1).tolist()
            labels += batch.labels.tolist()
            classes = logits.shape[-1]
    return class_scores(predicted, labels, classes)


def labels_of(train: Dataset, *others: Dataset | None) -> tuple[str, ...]:
    """The names of the classes that training data has. Raises InputError if they are unknown, or if they are words,
    whose order is that of the alphabet, and other data has numbers, which would count them in another order.

    Of labels that differ only in case, which are one class, the most frequent spelling is its name.
    """
    if train.labels:
        return checked_names(train.labels)
    counts = Counter(row.label for row in train.rows)
    spelled = {str(label).casefold(): label for label, _ in reversed(counts.most_common())}
    labels = {*spelled.values()}
    if None in counts or len(labels) < 2:
        raise InputError(f"{train.name} needs a label in every row and at least two different ones.")
    if all(isinstance(label, int) for label in labels):
        raise InputError(f"the labels of {train.name} are numbers: name them in order with --labels first,second,...")
    names = tuple(sorted(str(label) for label in labels))
    for other in others:
        if other is not None:
            _check_names(train, names, other)
    return names


def _check_names(train: Dataset, names: tuple[str, ...], other: Dataset) -> None:
    """InputError if numbers of other data do not stand for names that are known."""
    known = {name.lower() for name in names}
    if other.labels and all(name.lower() in known for name in other.labels):
        return
    for row in other.rows:
        if isinstance(row.label, int) and str(row.label) not in known:
            raise InputError(
                f"{other.name}, row {row.number}: the label {row.label} is a number, and the labels of {train.name} "
                "are words, which no number counts: name the classes in order with --labels first,second,..., or write "
                f"words in {other.name}, too."
            )


def checked_names(labels: tuple[str, ...]) -> tuple[str, ...]:
    """The names of classes. Raises InputError unless there are at least two, and all differ in more than case."""
    if len(labels) < 2:
        raise InputError(f"a classifier needs at least two classes, and only {', '.join(labels)} is named.")
    counts = Counter(name.casefold() for name in labels)
    twice = sorted(name for name in labels if counts[name.casefold()] > 1)
    if twice:
        raise InputError(f"the names of classes must differ in more than case; got {', '.join(twice)}.")
    return labels


def _chosen(rows: tuple[Row, ...], limit: int | None, seed: int) -> tuple[Row, ...]:
    if limit is None or limit >= len(rows):
        return rows
    numbers = random.Random(seed).sample(range(len(rows)), limit)
    return tuple(rows[number] for number in sorted(numbers))


def adapted(model: PreTrainedModel, settings: ClassifierSettings) -> ClassLogits:
    """The model with low-rank adapters, which are all that training changes."""
    from peft import LoraConfig, TaskType, get_peft_model

    config = LoraConfig(
        task_type=TaskType.SEQ_CLS,
        r=settings.rank,
        lora_alpha=2 * settings.rank,
        lora_dropout=settings.dropout,
        target_modules="all-linear" if settings.last_layers is None else _last_linear(model, settings.last_layers),
        # PEFT trains it whole, as a part of the head by the end of its name, and cannot do both.
        exclude_modules=["pre_classifier"] if hasattr(model, "pre_classifier") else None,
    )
    with quiet(), drawing(settings.seed):
        return ClassLogits(get_peft_model(model, config), settings.half)


def _last_linear(model: PreTrainedModel, blocks: int) -> list[str]:
    """Names of the linear layers in the last `blocks` blocks. Raises InputError where the model has fewer."""
    stacks = [module for module in model.base_model.modules() if isinstance(module, nn.ModuleList)]
    if not stacks or not 1 <= blocks <= len(stacks[0]):
        raise InputError(f"last_layers cannot be {blocks}: the model has {len(stacks[0]) if stacks else 0} blocks.")
    chosen = {
        id(module) for block in stacks[0][-blocks:] for module in block.modules() if isinstance(module, nn.Linear)
    }
    return sorted(name for name, module in model.named_modules() if id(module) in chosen)


def _fit(job: _LoraTraining, rows: tuple[Row, ...], module: ClassLogits, tokenizer: PreTrainedTokenizerBase) -> History:
    settings = job.settings
    dev = None if job.data.dev is None else _batches(job, job.data.dev, tokenizer)
    plan = TrainSettings(
        epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        seed=settings.seed,
        keep_best=settings.keep_best,
        checkpoint=job.out / CHECKPOINT_FILE,
        checkpoint_every=settings.checkpoint_every,
        identity=job.identity,
        progress=settings.progress,
    )
    evaluation = None if dev is None else Evaluation(lambda _: {"accuracy": accuracy(module.model, dev)})
    batches = _batches(job, replace(job.data.train, rows=rows), tokenizer)
    return fit(plan, module, batches, CrossEntropy(settings.smoothing), evaluation)


def _batches(job: _LoraTraining, data: Dataset, tokenizer: PreTrainedTokenizerBase) -> TokenBatches:
    tokens = tokenize(tokenizer, data.texts, job.settings.max_tokens)
    labels = data.class_indices(job.labels)
    return TokenBatches(tokens, labels, tokenizer, job.settings.batch_size, job.settings.seed)


def save_adapter(folder: Path, model: nn.Module, base: str) -> None:
    """Save an adapter in PEFT's format, in half precision, with the name of its base. Removes an older card."""
    # A card marks a finished adapter; an older run's card would describe the wrong weights.
    disk.remove(folder / zoo.CARD)
    from peft import PeftModel

    assert isinstance(model, PeftModel)
    with disk.whole_files(folder) as out:
        model.save_pretrained(str(out), safe_serialization=True)
        # Half precision halves the file's size; the card's accuracies are measured on the saved weights.
        tensors = {name: value.to(torch.float16).contiguous() for name, value in load_file(out / zoo.ADAPTER).items()}
        save_file(tensors, out / zoo.ADAPTER, metadata={"format": "pt"})
        # safetensors makes files that only their owner may read; this one is meant to be shared.
        (out / zoo.ADAPTER).chmod(0o644)
        path = out / "adapter_config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        # A folder of this machine would be useless elsewhere, and an unordered list would differ from run to run.
        config["base_model_name_or_path"] = base
        config["target_modules"] = sorted(config["target_modules"])
        path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _saved_scores(job: _LoraTraining, folder: Path) -> dict[str, ClassScores]:
    model, tokenizer = zoo.assemble(folder, job.out, job.labels, job.settings.seed)
    splits = {name: split for name, split in job.data.named().items() if name != "train"}
    return {name: measured(model, _batches(job, split, tokenizer)) for name, split in splits.items()}


def _noted(settings: ClassifierSettings) -> dict[str, Any]:
    return {name: value for name, value in determining(settings).items() if name != "labels"}
