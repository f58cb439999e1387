"""Whole classifiers, trained from nothing or from a base, for studies of sizes and architectures."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import InputError, UnknownNameError
from raison.data.dataset import Dataset
from raison.data.digest import dataset_digest
from raison.jobs import disk
from raison.jobs.folder import SCRATCH, refuse_others
from raison.jobs.identity import DATA, SETTINGS, digest_of, training_in
from raison.models.derived.identity import base_identity
from raison.models.loading.ready_made import base_weights, zoo
from raison.models.loading.scratch import ARCHITECTURES, Size, scratch_model, scratch_tokenizer
from raison.models.loading.weight_transfer import ARCHITECTURES as LAID
from raison.models.loading.weight_transfer import transferred
from raison.models.passes.removal import replacement_ids
from raison.models.stack.eval_mode import quiet
from raison.training.loop.batches import TokenBatches, readable, tokenize
from raison.training.loop.objective import TrainingBatch
from raison.training.loop.trainer import Evaluation, History, TrainSettings, fit
from raison.training.objectives.cross_entropy import CrossEntropy
from raison.training.preparation.data_leakage import check_apart
from raison.training.recipes.card import Outcome, Setup, TrainingCall, base_entry, determining, final_loss, make_card
from raison.training.recipes.classifier import (
    CHECKPOINT_FILE,
    ClassifierSettings,
    ClassLogits,
    accuracy,
    adapted,
    labels_of,
    measured,
)
from raison.training.settings.scratch import ScratchSettings as ScratchSettings

ENCODER = "t5_encoder"
_WITH_BASE = (ENCODER, *LAID)
"""The architectures that can be combined with a base; otherwise the base decides it."""
_OF_SCRATCH = ("width", "heads", "vocabulary")
_LAYERS = 2
"""The default for a model without a base."""


@dataclass(frozen=True, slots=True)
class MaskedBatches:
    """Batches in which a part of the tokens of some rows is masked, differently in each epoch. Implements
    trainer.Batches."""

    batches: TokenBatches
    share: float
    token: int

    def __len__(self) -> int:
        return len(self.batches)

    def epoch(self, number: int, start: int = 0) -> Iterator[TrainingBatch]:
        """See TokenBatches.epoch; the masked tokens depend on the seed, the epoch and the batch's place in it."""
        special = torch.tensor(sorted(set(self.batches.tokenizer.all_special_ids)))
        for place, batch in enumerate(self.batches.epoch(number, start), start):
            generator = torch.Generator().manual_seed((self.batches.seed * 100_003 + number) * 100_003 + place)
            ids = batch.inputs["input_ids"]
            some = torch.rand(len(ids), 1, generator=generator) < self.share
            level = torch.rand(len(ids), 1, generator=generator)
            hidden = (torch.rand(ids.shape, generator=generator) < level) & some & ~torch.isin(ids, special)
            yield TrainingBatch({**batch.inputs, "input_ids": ids.masked_fill(hidden, self.token)}, batch.labels)


def mistakes_in(settings: ScratchSettings) -> list[str]:
    """Settings that do not go together, one line each."""
    s, mistakes = settings, []
    if not s.architecture and not s.base:
        mistakes.append(f"give architecture ({', '.join(ARCHITECTURES)}), base, or both.")
    known = (*ARCHITECTURES, *LAID) if s.base else ARCHITECTURES
    if s.architecture and s.architecture not in known:
        mistakes.append(str(UnknownNameError("architecture", s.architecture, known)))
    elif s.architecture and s.base and s.architecture not in _WITH_BASE:
        others = ", ".join(_WITH_BASE)
        mistakes.append(f"base decides the architecture, unless it is one of {others}: leave '{s.architecture}' out.")
    if s.base and "/" not in s.base and s.base not in base_weights.names() and not os.path.isdir(s.base):
        mistakes.append(str(UnknownNameError("base model", s.base, base_weights.names())))
    if s.rank is not None and (not s.base or s.architecture):
        mistakes.append(
            "rank applies to adapters in an unchanged base, and without one all weights are trained: leave rank out."
        )
    if s.width % s.heads:
        mistakes.append(f"width {s.width} cannot be shared by {s.heads} heads: give a multiple of their number.")
    return mistakes


def train_scratch(
    train: Dataset, held_out: Dataset, out: Path, settings: ScratchSettings, command: str = ""
) -> dict[str, Any]:
    """Make a classifier, save it to the folder `out` as a whole model with its tokenizer, and return its card.

    `held_out` chooses the epoch; the card's accuracy is that of the saved model on it. A killed run resumes from its
    last epoch when started again. card.json is written last: a folder with one is finished. Raises InputError on
    invalid settings or labels, LoadError if the base cannot be loaded.
    """
    call = TrainingCall.now(command)
    if mistakes := mistakes_in(settings):
        raise InputError(f"this model cannot be built: {' '.join(mistakes)}")
    refuse_others(out, SCRATCH)
    check_apart([train.name], [held_out])
    train, held_out = train.counted_with(held_out), held_out.counted_with(train)
    labels = labels_of(train, held_out)
    identity = {
        **(base_identity(settings.base) if settings.base else {}),
        DATA: digest_of([dataset_digest(train), dataset_digest(held_out)]),
        SETTINGS: digest_of([labels, _noted(settings)]),
    }
    with training_in(out, SCRATCH, identity):
        model, tokenizer = _start(train, labels, settings)
        cut = replace(settings, max_tokens=readable(model.config, tokenizer, settings.max_tokens))
        module = _trainable(model, settings)
        batches, judged = (_batches(data, labels, tokenizer, cut) for data in (train, held_out))
        plan = _plan(settings, out, len(batches), digest_of(identity))
        history = _fit(module, batches, judged, settings, plan)
        trained: Any = module.model
        whole: PreTrainedModel = trained if settings.rank is None else trained.merge_and_unload()
        held_out_scores = measured(whole, judged)
        _save(whole, tokenizer, out)
        outcome = Outcome(len(train), final_loss(history.losses), call.seconds, {"held_out": held_out_scores})
        base = base_entry(settings.base) if settings.base else {"name": settings.architecture, "sha256": ""}
        data = {"train": train, "held_out": held_out}
        card = make_card(Setup(base, labels, data, _noted(settings), call.command), outcome)
        card["epochs"] = [round(scores["accuracy"], 4) for scores in history.scores]
        disk.write_whole(out / zoo.CARD, json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        disk.remove(out / CHECKPOINT_FILE)
    return card


def _start(
    train: Dataset, labels: tuple[str, ...], settings: ScratchSettings
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model before training."""
    s = settings
    if s.base:
        folder = base_weights.located(s.base, s.progress)
        model, tokenizer = zoo.fresh_classifier(
            folder, labels, s.seed, t5_encoder=s.architecture == ENCODER, layers=s.layers
        )
        if tokenizer.pad_token is None:
            # Batches need a padding token; the model finds a text's last token by its id.
            tokenizer.pad_token = tokenizer.eos_token
        model.config.pad_token_id = tokenizer.pad_token_id
        return (transferred(model, s.architecture, s.seed) if s.architecture in LAID else model), tokenizer
    size = Size(s.layers or _LAYERS, s.width, s.heads, s.vocabulary, s.max_tokens)
    made = scratch_tokenizer(s.architecture, train.texts, size)
    return scratch_model(s.architecture, size, made, labels, s.seed), made


def _trainable(model: PreTrainedModel, settings: ScratchSettings) -> ClassLogits:
    if settings.rank is None:
        return ClassLogits(model, settings.half)
    return adapted(model, ClassifierSettings(rank=settings.rank, seed=settings.seed, half=settings.half))


def _batches(
    data: Dataset, labels: tuple[str, ...], tokenizer: PreTrainedTokenizerBase, settings: ScratchSettings
) -> TokenBatches:
    tokens = tokenize(tokenizer, data.texts, settings.max_tokens)
    return TokenBatches(tokens, data.class_indices(labels), tokenizer, settings.batch_size, settings.seed)


def _plan(settings: ScratchSettings, out: Path, batches: int, identity: str) -> TrainSettings:
    return TrainSettings(
        epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        seed=settings.seed,
        keep_best=True,
        checkpoint=out / CHECKPOINT_FILE,
        # Only at the end of an epoch: training these models takes hardly longer than saving them.
        checkpoint_every=max(1, batches),
        identity=identity,
        progress=settings.progress,
    )


def _fit(
    module: ClassLogits, batches: TokenBatches, judged: TokenBatches, settings: ScratchSettings, plan: TrainSettings
) -> History:
    evaluation = Evaluation(lambda _: {"accuracy": accuracy(module.model, judged)}, patience=settings.patience)
    token = next(iter(replacement_ids(batches.tokenizer).values()))
    shown = MaskedBatches(batches, settings.masked, token) if settings.masked else batches
    return fit(plan, module, shown, CrossEntropy(), evaluation)


def _save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, out: Path) -> None:
    disk.remove(out / zoo.CARD)
    with quiet(), disk.whole_files(out) as part:
        model.save_pretrained(part, safe_serialization=True)
        tokenizer.save_pretrained(part)


def _noted(settings: ScratchSettings) -> dict[str, Any]:
    """The settings that were used, as plain JSON values."""
    noted = determining(settings)
    noted["layers"] = settings.layers or (None if settings.base else _LAYERS)
    unused = _OF_SCRATCH if settings.base else ()
    return {name: value for name, value in noted.items() if name not in unused}
