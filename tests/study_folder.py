"""The folder of a study as a run writes it, made from drawn numbers: for what reads such folders."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from raison.core.results.explanation import Explanation
from raison.runs.agreement import agreement
from raison.runs.run import Record, head_of, open_run
from raison.runs.summary import Costs
from raison.studies.folder import text_digest
from tests.explained import of_words

TEXTS = (
    "The harbour lights were lovely, but the soup arrived cold and an hour late.",
    "A patient, funny and quietly daring little film about beekeepers.",
    "I would not recommend this kettle to anyone who likes tea.",
    "Nothing works as promised, and the manual is a joke.",
    "<script>alert('x')</script> shows that \"quotes\" & tags are only text.",
    "Bright songs, warm people, and an ending that earns its tears.",
    "The second act drags so much that even the dog left the room.",
    "An honest portrait of a village that refuses to be forgotten.",
)
MODELS = {"small": "demo/sst2", "wide": "examples/wide-classifier", "decoder": "examples/decoder"}
METHODS = {  # quality in 0..1, evaluations, gradients
    "integrated_gradients": (0.62, 52, 50),
    "kernel_shap(samples=256)": (0.7, 256, 0),
    "lime": (0.66, 500, 0),
    "occlusion": (0.6, 14, 0),
    "saliency": (0.3, 1, 1),
    "input_x_gradient": (0.35, 1, 1),
    "attention_rollout": (0.25, 1, 0),
    "random(draws=24)": (0.05, 0, 0),
    "random": (0.05, 0, 0),
}
METRICS = (
    {"label": "comprehensiveness", "higher_is_better": True, "pool": "mean", "grouped": False},
    {"label": "sufficiency", "higher_is_better": False, "pool": "mean", "grouped": False},
    {"label": "log_odds", "higher_is_better": False, "pool": "mean", "grouped": False},
    {"label": "token_f1(average='micro')", "higher_is_better": True, "pool": "ratio", "grouped": False},
    {"label": "entropy", "higher_is_better": None, "pool": "mean", "grouped": False},
    {"label": "consistency", "higher_is_better": True, "pool": "mean", "grouped": True},
)
CHOOSERS = ("comprehensiveness", "sufficiency")
STUDY = """schema = 1
title = "Three models & <one> data set"
source = "invented"
reference = "nobody2026nothing"
size = "mini"
about = "Synthetic records.\\n\\nThey show every part of the page."
methods = ["lime"]
metrics = ["comprehensiveness"]

[[claims]]
says = "lime finds what <b>matters</b> better than random"
metric = "comprehensiveness"
above = "lime"
than = "random"

[[claims]]
says = "saliency is above 0.6"
metric = "comprehensiveness"
above = "saliency"
than = 0.6
run = "small--reviews"
"""


@dataclass(frozen=True)
class Made:
    """What a made study holds; every part can be left out."""

    models: tuple[str, ...] = tuple(MODELS)
    texts: int = 8
    finished: int = 8
    explanations: bool = True
    limit: int | None = None


def make(folder: Path, made: Made = Made()) -> Path:
    """Write a study folder as a run leaves it."""
    names = [f"{name}--reviews" for name in made.models]
    folder.mkdir(parents=True)
    header = {"schema": 1, "name": "made", "digest": text_digest(STUDY), "versions": {"torch": "9.9"}, "runs": names}
    (folder / "study.json").write_text(json.dumps(header | {"limit": made.limit}))
    (folder / "study.toml").write_text(STUDY)
    for number, (name, model) in enumerate(zip(names, made.models, strict=True)):
        make_run(folder / name, MODELS[model], made, number)
    return folder


def make_run(folder: Path, model: str, made: Made, number: int = 0) -> None:
    chosen = [(method, by) for by in CHOOSERS for method in ("lime", "random(draws=24)")]
    rows = [_row(method, None) for method in METHODS if method != "random(draws=24)"]
    rows += [_row(method, by) for method, by in chosen]
    header = {
        "schema": 1,
        "raison": "0.1.0",
        "model": model,
        "data": "reviews",
        "texts": made.texts,
        "texts_sha256": "0",
        "rows": rows,
        "metrics": METRICS,
        "settings": {"unit": "word", "of": "probability", "seed": 0, "target": None},
        "versions": {"python": "3.11", "torch": "9.9"},
    }
    run = open_run(head_of(header), folder)
    rng = np.random.default_rng(number)
    lines = [_record(row, seed, text, rng) for text in range(made.finished) for row in rows for seed in row["seeds"]]
    run.add(lines)
    if not made.explanations:
        (folder / "explanations.jsonl").unlink()
    else:
        plain = [row["label"] for row in rows if row["selected_by"] is None]
        found = {row: [e for record, e in lines if record.row == row and record.seed == 0] for row in plain}
        (folder / "agreement.json").write_text(json.dumps({"pairs": agreement(found)}))
    for row in rows:
        for seed in row["seeds"]:
            run.add_groups(row["label"], seed, "consistency", [(float(rng.random()),) for _ in range(4)])


def _row(method: str, by: str | None) -> dict[str, Any]:
    label = method if by is None else f"{method} by {by}"
    seeds = [0, 1] if method.startswith(("random", "lime")) else [0]
    return {"label": label, "method": method, "seeds": seeds, "selected_by": by}


def _record(row: dict[str, Any], seed: int, text: int, rng: np.random.Generator) -> tuple[Record, Explanation]:
    quality, evaluations, gradients = METHODS[row["method"]]
    quality += 0.1 * (row["selected_by"] is not None) + float(rng.normal(0, 0.08))
    e = explanation_of(row["method"], seed, text, rng)
    scores = (quality, 1 - quality, -3 * quality, (round(8 * max(quality, 0)), 10.0), float(rng.random()))
    costs = Costs(evaluations, gradients, 0.01 * evaluations)
    return Record(row["label"], seed, text, scores, costs, e.target, e.prediction, len(e.units)), e


def explanation_of(method: str, seed: int, text: int, rng: np.random.Generator) -> Explanation:
    sentence = TEXTS[text]
    plain = of_words(sentence)
    return replace(
        plain,
        scores=tuple(rng.normal(0.05, 0.2, len(plain.units)).tolist()),
        probabilities=(0.12, 0.88),
        value_full=0.88,
        method=method,
        seed=seed,
        version="0.1.0",
    )
