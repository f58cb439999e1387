"""Fine-tuning of a sequence classifier by low-rank adapters (LoRA)."""

import json
import random
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import InputError
from raison.data.dataset import Dataset, Row
from raison.models import weights, zoo
from raison.training.batches import TokenBatches, tokenize
from raison.training.card import Outcome, make_card, write_card
from raison.training.objectives.cross_entropy import CrossEntropy
from raison.training.trainer import History, TrainSettings, fit

CHECKPOINT_FILE = "training.checkpoint"
_LAST = 100
"""Steps whose mean loss is noted as the final one."""


@dataclass(frozen=True, slots=True)
class ClassifierSettings:
    """How to train a classifier.

    `labels` names numeric labels in order; left empty, the classes are the training data's labels, sorted.
    `rank` is that of the adapters, on every linear layer; `dropout` theirs. `max_tokens` cuts longer texts.
    `limit` takes so many training rows at random. `checkpoint_every` is in steps.
    """

    labels: tuple[str, ...] = ()
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 1e-3
    rank: int = 16
    dropout: float = 0.05
    smoothing: float = 0.0
    max_tokens: int = 128
    limit: int | None = None
    seed: int = 0
    keep_best: bool = False
    checkpoint_every: int = 200
    progress: bool = True


@dataclass(frozen=True, slots=True)
class Splits:
    """The data: what is learned, what the final accuracy is measured on, and what epochs may be chosen by."""

    train: Dataset
    test: Dataset
    dev: Dataset | None = None

    def named(self) -> dict[str, Dataset]:
        """The splits that there are."""
        splits = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: split for name, split in splits.items() if split is not None}


class _Logits(nn.Module):
    """The trainer's view of a classifier: inputs by name in, logits out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        logits: Tensor = self.model(**inputs).logits
        return logits


def train_classifier(
    base: str, data: Splits, out: Path, settings: ClassifierSettings, command: str = ""
) -> dict[str, Any]:
    """Train an adapter for `base` (a base model's name or a folder) and save it to the folder `out`.

    Writes the adapter in PEFT's format (safetensors, float16), card.json and README.md, and returns the card. Its
    accuracies are those of the saved adapter, loaded again. A killed run goes on from its last checkpoint in `out`
    when started again with the same settings and data. The test set is used once, at the end.
    Raises InputError on labels or settings that cannot be used, LoadError if the base cannot be loaded.
    """
    started = time.monotonic()
    labels = settings.labels or _labels_of(data.train)
    for split in data.named().values():
        split.class_indices(labels)
    folder = Path(base) if Path(base).is_dir() else weights.fetch(base, settings.progress)
    learned = replace(data, train=replace(data.train, rows=_chosen(data.train.rows, settings)))
    model, tokenizer = zoo.fresh_classifier(folder, labels, settings.seed)
    module = _adapted(model, settings)
    losses = _fit(module, tokenizer, learned, labels, out / CHECKPOINT_FILE, settings).losses[-_LAST:]
    _save_adapter(module.model, out, base)
    measured = _saved_accuracy(folder, out, data, labels, settings)
    outcome = Outcome(len(learned.train), sum(losses) / len(losses), time.monotonic() - started, measured)
    card = make_card(_base(base), labels, data.named(), _noted(settings), outcome, command)
    write_card(out, card)
    (out / CHECKPOINT_FILE).unlink(missing_ok=True)
    return card


def accuracy(model: nn.Module, batches: TokenBatches) -> float:
    """Share of rows whose strongest class is the label. Leaves the model in evaluation mode."""
    model.eval()
    right = 0
    with torch.no_grad():
        for _, batch in batches.in_order():
            right += int((model(**batch.inputs).logits.argmax(-1) == batch.labels).sum())
    return right / len(batches.tokens)


def _labels_of(train: Dataset) -> tuple[str, ...]:
    if train.labels:
        return train.labels
    found = {row.label for row in train.rows}
    if None in found or len(found) < 2:
        raise InputError(f"{train.name} needs a label in every row and at least two different ones.")
    if all(isinstance(label, int) for label in found):
        raise InputError(f"the labels of {train.name} are numbers: name them in order with --labels first,second,...")
    return tuple(sorted(str(label) for label in found))


def _chosen(rows: tuple[Row, ...], settings: ClassifierSettings) -> tuple[Row, ...]:
    if settings.limit is None or settings.limit >= len(rows):
        return rows
    numbers = random.Random(settings.seed).sample(range(len(rows)), settings.limit)
    return tuple(rows[number] for number in sorted(numbers))


def _adapted(model: PreTrainedModel, settings: ClassifierSettings) -> _Logits:
    from peft import LoraConfig, TaskType, get_peft_model

    config = LoraConfig(
        task_type=TaskType.SEQ_CLS,
        r=settings.rank,
        lora_alpha=2 * settings.rank,
        lora_dropout=settings.dropout,
        target_modules="all-linear",
    )
    with zoo.quiet(), torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        return _Logits(get_peft_model(model, config))


def _fit(
    module: _Logits,
    tokenizer: PreTrainedTokenizerBase,
    data: Splits,
    labels: tuple[str, ...],
    checkpoint: Path,
    settings: ClassifierSettings,
) -> History:
    dev = None if data.dev is None else _batches(tokenizer, data.dev, labels, settings)
    plan = TrainSettings(
        epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        seed=settings.seed,
        keep_best=settings.keep_best,
        checkpoint=checkpoint,
        checkpoint_every=settings.checkpoint_every,
        identity=f"{data.train.name} {data.train.sha256} {len(data.train)} rows, {labels}, rank {settings.rank}, "
        f"dropout {settings.dropout}, batches of {settings.batch_size}, {settings.max_tokens} tokens",
        progress=settings.progress,
    )
    evaluator = None if dev is None else lambda trained: accuracy(trained.model, dev)
    batches = _batches(tokenizer, data.train, labels, settings)
    return fit(plan, module, batches, CrossEntropy(settings.smoothing), evaluator)


def _batches(
    tokenizer: PreTrainedTokenizerBase, data: Dataset, labels: tuple[str, ...], settings: ClassifierSettings
) -> TokenBatches:
    tokens = tokenize(tokenizer, data.texts, settings.max_tokens)
    return TokenBatches(tokens, data.class_indices(labels), tokenizer, settings.batch_size, settings.seed)


def _save_adapter(model: nn.Module, out: Path, base: str) -> None:
    model.save_pretrained(out, safe_serialization=True)
    # Half precision halves what ships; the card's accuracies are measured on what is saved here.
    tensors = {name: value.to(torch.float16).contiguous() for name, value in load_file(out / zoo.ADAPTER).items()}
    save_file(tensors, out / zoo.ADAPTER, metadata={"format": "pt"})
    path = out / "adapter_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    # The folder of this machine would mean nothing elsewhere, and an unordered list would differ from run to run.
    config["base_model_name_or_path"] = _base(base)["name"]
    config["target_modules"] = sorted(config["target_modules"])
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _base(base: str) -> dict[str, str]:
    if Path(base).is_dir():
        return {"name": base, "sha256": ""}
    known = weights.base_named(base)
    return {"name": known.hub, "sha256": known.sha256}


def _saved_accuracy(
    folder: Path, out: Path, data: Splits, labels: tuple[str, ...], settings: ClassifierSettings
) -> dict[str, float]:
    model, tokenizer = zoo.assemble(folder, out, labels)
    splits = {name: split for name, split in data.named().items() if name != "train"}
    return {name: accuracy(model, _batches(tokenizer, split, labels, settings)) for name, split in splits.items()}


def _noted(settings: ClassifierSettings) -> dict[str, Any]:
    return {name: value for name, value in asdict(settings).items() if name not in ("labels", "progress")}
