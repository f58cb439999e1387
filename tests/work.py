"""The smallest work of every kind that has a folder."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import raison
from raison.core.capabilities.passes import Passes
from raison.data import Dataset, Row
from raison.explaining.settings import Settings
from raison.jobs import folder as kinds
from raison.jobs.folder import WorkKind
from raison.studies.file import read
from raison.studies.folder import check_folder
from raison.studies.kinds.audit.spec import AuditPlan
from raison.studies.runner import examine, execute
from raison.studies.runner import run as run_study
from raison.training.recipes import answers as answers_recipe
from raison.training.recipes.aml import train_aml
from raison.training.recipes.amortized_shap import AmortizedShapSettings, train_amortized_shap
from raison.training.recipes.answers import train_answers
from raison.training.recipes.at2 import squad_rows, train_at2
from raison.training.recipes.classifier import ClassifierSettings, Splits, train_classifier
from raison.training.recipes.ivra import fine_tune, train_ivra
from raison.training.recipes.scratch import ScratchSettings, train_scratch
from raison.training.settings.aml import AmlSettings
from raison.training.settings.answers import AnswersSettings
from raison.training.settings.at2 import At2Settings
from raison.training.settings.ivra import FineTuneSettings, IvraSettings
from raison.trust.attacks import EmbeddingAttack
from raison.trust.substitution import Substitution
from tests.reading import build_chatting, write_articles
from tests.study_files import FILES
from tests.tiny import LABELS, TINY
from tests.trust_stand_in import Stand

WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
TEXTS = tuple(" ".join(WORDS[i % 5 : i % 5 + 3 + i % 9]) for i in range(18))
AUDIT = AuditPlan(
    randomised=2,
    changed=2,
    attacked=2,
    attack=EmbeddingAttack(epsilon=1.0, relative=True, steps=2, optimiser="sign", draws=1),
    substitution=Substitution(swaps=1, tries=1),
)

Work = Callable[[Path, Path], object]
"""Does a kind of work: what it needs, and its folder."""


def prepare(place: Path) -> Path:
    """What the work needs: tiny models, texts, and articles."""
    model, tokenizer = TINY["bert"]()
    loaded = raison.load(model, tokenizer)
    with torch.no_grad():
        # Every class is predicted of some texts.
        model.classifier.bias -= loaded.ask(Passes).logits(loaded.encode(TEXTS, "word")).mean(0)
    model.save_pretrained(place / "tiny")
    tokenizer.save_pretrained(place / "tiny")
    for part in build_chatting():
        part.save_pretrained(place / "writer")
    write_articles(place / "data" / "squad")
    (place / "words.tsv").write_text("".join(f"{text}\t{LABELS[i % 3]}\n" for i, text in enumerate(TEXTS)))
    for name, text in FILES.items():
        own = text.replace("PLACE", str(place)).replace('title = "Tiny"', f'title = "Tiny {name}"')
        (place / f"{name}.toml").write_text(own)
    (place / "settings.json").write_text('{"metric": "gini", "epochs": 1, "seed": 0}')
    return place


def asked(place: Path, name: str) -> Any:
    """One of the settings with which the work is done."""
    return json.loads((place / "settings.json").read_text())[name]


def data_of(place: Path) -> Dataset:
    lines = [line.split("\t") for line in (place / "words.tsv").read_text().splitlines()]
    return Dataset("words", tuple(Row(text, label, i) for i, (text, label) in enumerate(lines)), labels=LABELS)


def compare(place: Path, out: Path) -> None:
    texts, metric = data_of(place).texts, asked(place, "metric")
    raison.compare(raison.load(place / "tiny"), texts, ["occlusion"], [metric], out=out, progress=False)


def audit(place: Path, out: Path) -> None:
    model, texts = raison.load(place / "tiny"), data_of(place).texts[2:4]
    settings = Settings(seed=asked(place, "seed"))
    raison.audit(model, texts, ["saliency"], out=out, plan=AUDIT, settings=settings, progress=False)


def explained_file(place: Path, out: Path) -> None:
    model, seed = raison.load(place / "tiny"), asked(place, "seed")
    raison.explain_file(model, place / "words.tsv", out, "occlusion", seed=seed, progress=False)


def trust(place: Path, out: Path) -> None:
    study = read(place / "trust.toml", Stand().works())
    check_folder(out, study, None, resume=True)
    execute(examine(study), out, progress=False)


def classifier(place: Path, out: Path) -> None:
    data, epochs = data_of(place), asked(place, "epochs")
    settings = ClassifierSettings(epochs=epochs, batch_size=8, rank=2, checkpoint_every=2, progress=False)
    train_classifier(str(place / "tiny"), Splits(data, replace(data, rows=data.rows[:4])), out, settings)


def answers(place: Path, out: Path) -> None:
    settings = AnswersSettings(
        epochs=asked(place, "epochs"), fewest=3, most=3, questions=1, rank=2, test_limit=1, checkpoint_every=2,
        progress=False,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAISON_DATA", str(place / "data"))
        # What an untrained model answers is nonsense, however long it is.
        patched.setattr(answers_recipe, "_LONGEST", 2)
        train_answers(str(place / "writer"), out, settings)


def scratch(place: Path, out: Path) -> None:
    data, epochs = data_of(place), 2 * asked(place, "epochs")
    settings = ScratchSettings(
        architecture="bert", width=8, heads=2, vocabulary=320, epochs=epochs, batch_size=9, progress=False
    )
    train_scratch(data, replace(data, rows=data.rows[:4]), out, settings)


def fine_tuned(place: Path, out: Path) -> None:
    settings = FineTuneSettings(epochs=asked(place, "epochs"), batch_size=6, texts=6, validation=3, progress=False)
    fine_tune(str(place / "tiny"), data_of(place), out, settings)


def aml(place: Path, out: Path) -> None:
    settings = AmlSettings(
        metrics=("comprehensiveness",),
        weights=None,
        texts=6,
        validation=6,
        trials=2,
        search_texts=4,
        search_epochs=1,
        epochs=asked(place, "epochs"),
        batch_size=6,
        checks=1,
        progress=False,
    )
    train_aml(raison.load(place / "tiny"), data_of(place), out, settings)


def amortized_shap(place: Path, out: Path) -> None:
    settings = AmortizedShapSettings(
        samples=4, texts=6, validation=6, epochs=asked(place, "epochs"), batch_size=3, rank=2, progress=False
    )
    train_amortized_shap(raison.load(place / "tiny"), data_of(place), out, settings)


def at2(place: Path, out: Path) -> None:
    settings = At2Settings(questions=6, held_out=2, ablations=2, steps=asked(place, "epochs"), progress=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAISON_DATA", str(place / "data"))
        rows = [replace(row, answer="a captain") for row in squad_rows(settings)]
    train_at2(raison.load(place / "writer"), rows, out, settings)


def ivra(place: Path, out: Path) -> None:
    settings = IvraSettings(
        criteria=("comp",), epochs=asked(place, "epochs"), batch_size=6, texts=6, validation=3, progress=False
    )
    train_ivra(raison.load(place / "tiny"), data_of(place), out, settings)


WORKS: Mapping[WorkKind, Work] = {
    kinds.COMPARISON: compare,
    kinds.STUDY: lambda place, out: run_study(place / "comparison.toml", out, resume=True, progress=False),
    kinds.TRAININGS: lambda place, out: run_study(place / "trainings.toml", out, resume=True, progress=False),
    kinds.TRUST: trust,
    kinds.AUDIT: audit,
    kinds.EXPLANATIONS: explained_file,
    kinds.CLASSIFIER: classifier,
    kinds.ANSWERS: answers,
    kinds.SCRATCH: scratch,
    kinds.FINE_TUNING: fine_tuned,
    kinds.AML: aml,
    kinds.AMORTIZED_SHAP: amortized_shap,
    kinds.AT2: at2,
    kinds.IVRA: ivra,
}
