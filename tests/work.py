"""The smallest work of every kind that has a folder, and what a folder holds but for the seconds."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pyarrow import parquet
from safetensors.torch import load_file, save_file

import raison
from raison.core.capabilities.passes import Passes
from raison.data import Dataset, Row
from raison.explaining.attribution import Settings
from raison.jobs import folder as kinds
from raison.jobs.folder import WorkKind
from raison.jobs.identity import CONFIGURATION, DATA, SETTINGS, TOKENIZER, WEIGHTS
from raison.studies.file import read
from raison.studies.folder import check_folder
from raison.studies.kinds.audit.spec import AuditPlan
from raison.studies.runner import examine, execute
from raison.studies.runner import run as run_study
from raison.training.recipes.aml import train_aml
from raison.training.recipes.aml_settings import AmlSettings
from raison.training.recipes.amortized_shap import AmortizedShapSettings, train_amortized_shap
from raison.training.recipes.answers import train_answers
from raison.training.recipes.answers_settings import AnswersSettings
from raison.training.recipes.at2 import squad_rows, train_at2
from raison.training.recipes.at2_settings import At2Settings
from raison.training.recipes.classifier import ClassifierSettings, Splits, train_classifier
from raison.training.recipes.ivra import fine_tune, train_ivra
from raison.training.recipes.ivra_settings import FineTuneSettings, IvraSettings
from raison.training.recipes.scratch import ScratchSettings, train_scratch
from raison.trust.attacks import EmbeddingAttack
from raison.trust.substitution import Substitution
from tests.reading import build_chatting, write_articles
from tests.tiny import LABELS, TINY
from tests.trust_stand_in import Stand

WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
TEXTS = tuple(" ".join(WORDS[i % 5 : i % 5 + 3 + i % 9]) for i in range(18))
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
AUDITED = """
schema = 1
kind = "audit"
title = "Tiny"
methods = ["saliency"]
[model]
name = "PLACE/tiny"
[data]
source = "PLACE/words.tsv"
limit = 4
[texts]
randomised = 2
changed = 2
attacked = 4
"""
AGREEMENT = """
schema = 1
kind = "agreement"
title = "Tiny"
methods = ["occlusion", "saliency", "attention_average"]
[model]
name = "PLACE/tiny"
[data]
source = "PLACE/words.tsv"
limit = 9
[[claims]]
says = "they are alike"
above = "occlusion & saliency"
than = "occlusion & attention_average"
"""
SHORTCUTS = """
schema = 1
kind = "shortcuts"
title = "Tiny"
word = "zyxel"
label = "neutral"
shares = [0.4]
rows = 15
seeds = [0, 1]
draws = 3
[data]
source = "PLACE/words.tsv"
[[claims]]
says = "what is planted is found"
above = "planted 0.4"
than = "both 0.4"
[[claims]]
says = "there are few false alarms"
below = "random"
than = 0.5
"""
FILES = {
    "comparison": STUDY,
    "trainings": TRAININGS,
    "trust": TRUST,
    "audit": AUDITED,
    "agreement": AGREEMENT,
    "shortcuts": SHORTCUTS,
}
"""A file of every kind of study."""
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
        progress=False,
    )
    train_aml(raison.load(place / "tiny"), data_of(place), out, settings)


def amortized_shap(place: Path, out: Path) -> None:
    settings = AmortizedShapSettings(
        samples=4, texts=6, validation=6, epochs=asked(place, "epochs"), batch_size=3, rank=2, progress=False
    )
    train_amortized_shap(raison.load(place / "tiny"), data_of(place), out, settings)


def at2(place: Path, out: Path) -> None:
    settings = At2Settings(questions=12, held_out=4, ablations=2, steps=asked(place, "epochs"), progress=False)
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


def _edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, path
    path.write_text(text.replace(old, new))


def _other_weights(place: Path) -> None:
    """Of the same names and shapes, under the same name."""
    for path in place.glob("*/model.safetensors"):
        state = {name: 1.01 * value for name, value in load_file(path).items()}
        save_file(state, path, metadata={"format": "pt"})


def _other_vocabulary(place: Path) -> None:
    """Two words have changed their numbers."""
    for path in place.glob("*/tokenizer.json"):
        held = json.loads(path.read_text())
        words = held["model"]["vocab"]
        one, other = list(words)[-2:]
        words[one], words[other] = words[other], words[one]
        path.write_text(json.dumps(held))


def _other_configuration(place: Path) -> None:
    _edited(place / "tiny" / "config.json", '"layer_norm_eps": 1e-12', '"layer_norm_eps": 0.001')
    _edited(place / "writer" / "config.json", '"rms_norm_eps": 1e-06', '"rms_norm_eps": 0.001')


def _other_text(place: Path) -> None:
    lines = (place / "words.tsv").read_text().splitlines(keepends=True)
    lines[2] = f"really {lines[2]}"
    (place / "words.tsv").write_text("".join(lines))
    _edited(place / "data/squad/squad_v1.1_trainpart_dev.json", "who saw it 2?", "who really saw it 2?")


def _other_settings(place: Path) -> None:
    (place / "settings.json").write_text('{"metric": "entropy", "epochs": 2, "seed": 1}')
    _edited(place / "comparison.toml", '"gini"', '"entropy"')
    _edited(place / "trainings.toml", "epochs = 1", "epochs = 2")
    _edited(place / "trust.toml", "steps = 3", "steps = 4")


CHANGES: Mapping[str, Callable[[Path], None]] = {
    WEIGHTS: _other_weights,
    TOKENIZER: _other_vocabulary,
    CONFIGURATION: _other_configuration,
    DATA: _other_text,
    SETTINGS: _other_settings,
}
"""What can become another one between two starts, by the name that errors use -> makes it so in a prepared place."""


@contextmanager
def changed(place: Path, what: str) -> Iterator[None]:
    """Inside, the work is about something else of the same name."""
    before = tree(place)
    CHANGES[what](place)
    try:
        yield
    finally:
        for name, held in before.items():
            (place / name).write_bytes(held)


_CLOCK = (
    "seconds", "training_seconds", "crc32", "spent", "estimate", "peak_bytes", "evaluated_seconds", "slowest", "bytes",
    "file_sha256",
)  # fmt: skip


def tree(folder: Path) -> dict[str, bytes]:
    """Every file, byte for byte."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def content(folder: Path) -> dict[str, object]:
    """Everything but what depends on the clock, and the folder's own name; of lines, the last whole one of each key."""
    found: dict[str, object] = {}
    for name, held in tree(folder).items():
        if Path(name).name.startswith("spent"):
            # Seconds alone.
            continue
        if name.endswith(".json"):
            found[name] = _timeless(json.loads(held), folder)
        elif name.endswith(".jsonl"):
            found[name] = _lines(held, folder)
        elif name.endswith(".parquet"):
            found[name] = _timeless(parquet.read_table(folder / name).to_pylist(), folder)
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
