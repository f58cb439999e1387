"""A model of which it is known what matters, and short trainings of explainers of it that can be killed."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from raison.core.inputs.encoding import Encoding
from raison.core.inputs.rationale import Span
from raison.data import Dataset, Row
from raison.numerics.losses.attributive_masking import LossWeights
from raison.training.loop.objective import TrainingBatch
from raison.training.loop.tuning import TuningTrial
from raison.training.objectives.attributive_masking import AttributiveMasking
from raison.training.recipes import aml
from raison.training.recipes.aml import train_aml
from raison.training.settings.aml import AmlSettings
from tests.tokenizers import TOKENIZERS
from tests.toys import ToyModel

CLASS_WORDS = ("good", "wonderful", "fine", "bad", "terrible")
FILLER = "the story about sea rain music sailor told home actors jokes watch walked".split()


class Planted(ToyModel):
    """Only the class words, which the toys' vocabulary has, move the prediction; all others are unknown to it.

    Notes which whole texts were predicted, the rows of every pass over given embeddings, and of every batch of
    perturbed texts the texts and the words that are kept.
    """

    def __init__(self) -> None:
        super().__init__()
        self.whole: Counter[str] = Counter()
        self.rows: list[int] = []
        self.perturbed: list[list[tuple[str, list[list[bool]]]]] = []

    def gain(self, embeds: Tensor, own: Tensor) -> Tensor:
        # 0.2 is what the special tokens have.
        return 3 * ((embeds[..., 0] * own).sum(1) - 0.2)

    def logits(self, encoding: Encoding, embeds: Tensor | None = None) -> Tensor:
        if embeds is None:
            self.whole.update(str(text) for text in encoding.texts)
        else:
            self.rows.append(len(embeds))
        return super().logits(encoding, embeds)

    def masked_logits(self, encoding: Encoding, keeps: Sequence[Tensor], removal: str) -> list[Tensor]:
        for text, rows in zip(encoding.texts, keeps, strict=True):
            self.whole[str(text)] += int(rows.all(1).sum())
        if not all(rows.all() for rows in keeps):
            self.perturbed.append(
                [(str(text), rows.tolist()) for text, rows in zip(encoding.texts, keeps, strict=True)]
            )
        return super().masked_logits(encoding, keeps, removal)


def texts(count: int, seed: int, words: Sequence[str] = CLASS_WORDS) -> Dataset:
    """Filler words around one class word, which is marked."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        found = draw.choices(FILLER, k=draw.randint(4, 9))
        place, word = draw.randrange(len(found) + 1), draw.choice(words)
        start = len("".join(f"{before} " for before in found[:place]))
        found.insert(place, word)
        rows.append(Row(" ".join(found), None, number, ((Span(start, start + len(word)),),)))
    return Dataset("planted", tuple(rows), sha256="abc")


GIVEN = LossWeights(1.0, 1.0, 0.5)
DATA = texts(40, 0)


def quick_settings(backbone: Path) -> AmlSettings:
    """A search of three trials of two steps each, and six steps of training, of a random BERT of one layer."""
    tokenizer = TOKENIZERS["bert_uncased"]()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.05,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertModel(config).save_pretrained(backbone)
    tokenizer.save_pretrained(backbone)
    return AmlSettings(
        backbone=str(backbone),
        rank=2,
        learning_rate=0.01,
        unit="word",
        texts=24,
        validation=8,
        epochs=2,
        batch_size=8,
        trials=3,
        search_texts=16,
        search_epochs=1,
        progress=False,
    )


def names_in(folder: Path) -> list[str]:
    """What a training has made; what it is about, which it writes first and keeps, is left out."""
    return sorted(path.name for path in folder.iterdir() if path.name != "training.json")


def no_search(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """A search that tries nothing and finds other weights for sufficiency; returns what each call is asked for."""
    asked: list[Sequence[str]] = []

    def search(settings: object, space: object, goals: Sequence[str], run: object) -> tuple[TuningTrial, ...]:
        asked.append(goals)
        found = []
        for number, best in enumerate((("comprehensiveness", "log_odds"), ("sufficiency",))):
            weights = {"prediction": 1.0, "inverse": 0.5 + number, "size": 0.3}
            found.append(TuningTrial(number, weights, {goal: float(goal in best) for goal in goals}, "complete"))
        return tuple(found)

    monkeypatch.setattr(aml, "search", search)
    return asked


class Killed(BaseException):
    """Stands for the end of the process."""


def dies_at(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """The process ends in the given step, counted over the search and the trainings."""
    loss, calls = AttributiveMasking.loss, iter(range(1, 10**6))

    def mortal(self: AttributiveMasking, module: nn.Module, batch: TrainingBatch) -> Tensor:
        if next(calls) == call:
            raise Killed
        return loss(self, module, batch)

    monkeypatch.setattr(AttributiveMasking, "loss", mortal)


def killed_at(call: int, out: Path, settings: AmlSettings) -> None:
    with pytest.MonkeyPatch.context() as patched:
        dies_at(patched, call)
        with pytest.raises(Killed):
            train_aml(Planted(), DATA, out, settings)
