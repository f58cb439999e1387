"""The smallest work of every kind that has a folder, and what a folder holds but for the seconds."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import torch

import raison
from raison.data import Dataset, Row
from raison.jobs import folder as kinds
from raison.jobs.folder import Kind
from raison.studies.kinds.audit.spec import AuditPlan
from raison.studies.kinds.comparison.work import run as run_study
from raison.studies.kinds.trainings.spec import read as read_trainings_file
from raison.studies.kinds.trainings.work import examine_trainings, execute_trainings
from raison.studies.kinds.trust.spec import read as read_trust_file
from raison.studies.kinds.trust.work import examine_trust, execute_trust
from raison.training.aml import train_aml
from raison.training.aml_settings import AmlSettings
from raison.training.classifier import ClassifierSettings, Splits, train_classifier
from raison.training.ivra import fine_tune, train_ivra
from raison.training.ivra_settings import FineTuneSettings, IvraSettings
from raison.training.scratch import ScratchSettings, train_scratch
from raison.trust.attacks import EmbeddingAttack
from raison.trust.substitution import Substitution
from tests.tiny import LABELS, TINY
from tests.trust_stand_in import Stand

WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
TEXTS = tuple(" ".join(WORDS[i % 5 : i % 5 + 3 + i % 9]) for i in range(18))
DATA = Dataset("words", tuple(Row(text, LABELS[i % 3], i) for i, text in enumerate(TEXTS)), labels=LABELS)
STUDY = """
schema = 1
title = "Tiny"
methods = ["occlusion"]
metrics = ["gini", "consistency(batch=8)"]
agreement = true
[models.one]
name = "PLACE/tiny"
[data.words]
source = "PLACE/words.tsv"
"""
TRAININGS = """
schema = 1
kind = "trainings"
title = "Tiny"
seeds = [0]
metrics = ["gini"]
[tasks.one]
base = "PLACE/tiny"
labels = ["negative", "neutral", "positive"]
even_at_chance = true
train = { source = "PLACE/words.tsv", limit = 6 }
dev = { source = "PLACE/words.tsv", limit = 3 }
test = { source = "PLACE/words.tsv", limit = 3 }
[plain]
epochs = 1
batch_size = 6
[[trainings]]
name = "comp"
criteria = ["comp"]
epochs = 1
batch_size = 6
[[posthoc]]
methods = ["occlusion"]
"""
TRUST = """
schema = 1
kind = "trust"
title = "Tiny"
methods = ["saliency", "attention_rollout"]
[models.one]
name = "PLACE/tiny"
[data.words]
source = "PLACE/words.tsv"
limit = 4
[randomisation]
texts = 2
orders = ["cascading"]
draws = 1
[attacks]
texts = 4
objectives = ["constrained"]
steps = 3
substitution = { swaps = 1, tries = 2 }
"""
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
    """What the work needs: a tiny model, and texts."""
    model, tokenizer = TINY["bert"]()
    loaded = raison.load(model, tokenizer)
    with torch.no_grad():
        # Every class is predicted of some texts.
        model.classifier.bias -= loaded.logits(loaded.encode(TEXTS, "word")).mean(0)
    model.save_pretrained(place / "tiny")
    tokenizer.save_pretrained(place / "tiny")
    (place / "words.tsv").write_text("".join(f"{text}\t{LABELS[i % 3]}\n" for i, text in enumerate(TEXTS)))
    for name, text in (("study", STUDY), ("trainings", TRAININGS), ("trust", TRUST)):
        (place / f"{name}.toml").write_text(text.replace("PLACE", str(place)))
    return place


def compare(place: Path, out: Path) -> None:
    raison.compare(raison.load(place / "tiny"), TEXTS, ["occlusion"], ["gini"], out=out, progress=False)


def audit(place: Path, out: Path) -> None:
    raison.audit(raison.load(place / "tiny"), TEXTS[2:4], ["saliency"], out=out, plan=AUDIT, progress=False)


def trainings(place: Path, out: Path) -> None:
    execute_trainings(examine_trainings(read_trainings_file(place / "trainings.toml")), out, progress=False)


def trust(place: Path, out: Path) -> None:
    works = Stand().works()
    execute_trust(examine_trust(read_trust_file(place / "trust.toml", works), works), out, progress=False)


def classifier(place: Path, out: Path) -> None:
    settings = ClassifierSettings(epochs=1, batch_size=8, rank=2, checkpoint_every=2, progress=False)
    train_classifier(str(place / "tiny"), Splits(DATA, replace(DATA, rows=DATA.rows[:4])), out, settings)


def scratch(place: Path, out: Path) -> None:
    settings = ScratchSettings(
        architecture="bert", width=8, heads=2, vocabulary=320, epochs=2, batch_size=9, progress=False
    )
    train_scratch(DATA, replace(DATA, rows=DATA.rows[:4]), out, settings)


def fine_tuned(place: Path, out: Path) -> None:
    settings = FineTuneSettings(epochs=1, batch_size=6, texts=6, validation=3, progress=False)
    fine_tune(str(place / "tiny"), DATA, out, settings)


def aml(place: Path, out: Path) -> None:
    settings = AmlSettings(
        metrics=("comprehensiveness",),
        weights=None,
        texts=6,
        validation=6,
        trials=2,
        search_texts=4,
        search_epochs=1,
        epochs=1,
        batch_size=6,
        progress=False,
    )
    train_aml(raison.load(place / "tiny"), DATA, out, settings)


def ivra(place: Path, out: Path) -> None:
    settings = IvraSettings(criteria=("comp",), epochs=1, batch_size=6, texts=6, validation=3, progress=False)
    train_ivra(raison.load(place / "tiny"), DATA, out, settings)


WORKS: Mapping[Kind, Work] = {
    kinds.COMPARISON: compare,
    kinds.STUDY: lambda place, out: run_study(place / "study.toml", out, resume=True, progress=False),
    kinds.TRAININGS: trainings,
    kinds.TRUST: trust,
    kinds.AUDIT: audit,
    kinds.CLASSIFIER: classifier,
    kinds.SCRATCH: scratch,
    kinds.FINE_TUNING: fine_tuned,
    kinds.AML: aml,
    kinds.IVRA: ivra,
}

_CLOCK = ("seconds", "training_seconds", "crc32", "spent", "estimate", "peak_bytes", "evaluated_seconds")


def tree(folder: Path) -> dict[str, bytes]:
    """Every file, byte for byte."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def content(folder: Path) -> dict[str, object]:
    """Everything but what depends on the clock, and the folder's own name; of lines, the last whole one of each key."""
    found: dict[str, object] = {}
    for name, held in tree(folder).items():
        if name.endswith(".json"):
            found[name] = _timeless(json.loads(held), folder)
        elif name.endswith(".jsonl"):
            found[name] = _lines(held, folder)
        else:
            found[name] = held.replace(str(folder).encode(), b"OUT")
    return found


def _lines(held: bytes, folder: Path) -> list[str]:
    found = {}
    for line in held.split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        # What follows the keys of a line is what was measured.
        known = {name: value for name, value in record.items() if isinstance(value, str | int)}
        key = tuple(f"{name} {value}" for name, value in known.items() if name not in (*_CLOCK, "prediction", "target"))
        found[key] = json.dumps(_timeless(record, folder), sort_keys=True)
    return sorted(found.values())


def _timeless(value: object, folder: Path) -> object:
    if isinstance(value, dict):
        return {key: _timeless(item, folder) for key, item in value.items() if key not in _CLOCK}
    if isinstance(value, str):
        return re.sub(re.escape(str(folder)), "OUT", value)
    return [_timeless(item, folder) for item in value] if isinstance(value, list) else value
