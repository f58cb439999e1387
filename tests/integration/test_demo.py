"""The main job on the embedded demo models, with their real weights."""

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raison
from raison.core.model import LanguageModel
from raison.data.sourced import KnownSources
from raison.models.derived import amortized
from raison.models.derived.trained_heads import read_card as read_heads
from raison.models.derived.trained_masks import read_card
from raison.models.loading.ready_made import zoo
from raison.text.answer_match import same_answer

pytestmark = pytest.mark.demo

REVIEWS = [
    "a modest pleasure that accomplishes its goals with ease and confidence .",
    "a tired , clumsy film with a lazy script and no charm at all .",
    "the acting is wonderful , the story is moving and the ending is perfect .",
    "i was bored by every scene and annoyed by the pointless ending .",
    "an honest and funny portrait of a family that stays together .",
    "it is badly written , badly acted and far too long .",
]


@lru_cache(maxsize=1)
def loaded(name: str) -> LanguageModel:
    """A model that several tests in a row ask, and none changes."""
    return raison.load(name)


CLASSIFIERS = [name for name in zoo.names() if zoo.is_classifier(name)]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_adapters_are_small_and_say_where_they_come_from(name: str) -> None:
    demo = zoo.resolve(name)
    assert sum(path.stat().st_size for path in demo.adapter_folder.iterdir()) < 3_000_000
    assert demo.card["command"].startswith("raison train classifier")
    # Reviews are cut (after 128 or 256 tokens) and few; Rotten Tomatoes has single sentences, 8,530 to learn from; the
    # decoder saw 6,000 of 16,000 emotions.
    lowest = {
        "demo/smollm2-imdb": 0.84,
        "demo/imdb": 0.865,
        "demo/smollm2-emotion": 0.86,
        "demo/rotten_tomatoes": 0.81,
    }.get(name, 0.87)
    assert demo.card["accuracy"]["test"] > lowest
    assert not any(part.startswith("/") for part in demo.card["command"].split())


PREDICTED = [
    ("demo/sst2", REVIEWS[0], "positive"),
    ("demo/sst2", REVIEWS[1], "negative"),
    ("demo/emotion", "i am so happy and grateful to be with my friends today", "joy"),
    ("demo/rotten_tomatoes", REVIEWS[0], "positive"),
    ("demo/rotten_tomatoes", REVIEWS[1], "negative"),
    ("demo/smollm2", REVIEWS[0], "positive"),
    ("demo/smollm2", REVIEWS[1], "negative"),
    ("demo/smollm2-sst2", REVIEWS[2], "positive"),
    ("demo/smollm2-sst2", REVIEWS[3], "negative"),
    ("demo/smollm2-imdb", REVIEWS[4] + " I loved it.", "positive"),
    ("demo/smollm2-imdb", REVIEWS[5] + " Do not watch it.", "negative"),
    ("demo/imdb", REVIEWS[4] + " I loved it.", "positive"),
    ("demo/imdb", REVIEWS[5] + " Do not watch it.", "negative"),
    ("demo/smollm2-emotion", "i am so happy and grateful to be with my friends today", "joy"),
    ("demo/smollm2-ag_news", "The team won the championship after a late goal in the final match", "Sports"),
    ("demo/ag_news", "The team won the championship after a late goal in the final match", "Sports"),
    ("demo/sst2_known", REVIEWS[2], "positive"),
]

LIKE_SST2 = ("demo/smollm2-ag_news", "demo/smollm2-imdb", "demo/smollm2-emotion")
"""Adapters of SmolLM2, each of which takes as long to load."""


@pytest.mark.in_turn(1)
@pytest.mark.parametrize(
    ("name", "text", "label"),
    [pytest.param(*row, marks=pytest.mark.thorough if row[0] in LIKE_SST2 else ()) for row in PREDICTED],
)
def test_predictions(name: str, text: str, label: str) -> None:
    explanation = raison.explain(loaded(name), text, "random")
    assert explanation.prediction == label
    assert np.isfinite(explanation.probabilities).all()
    if name in CLASSIFIERS:
        assert len(explanation.probabilities) == len(zoo.resolve(name).card["labels"])


def test_every_classifier_is_asked() -> None:
    assert {name for name, _, _ in PREDICTED} >= {*CLASSIFIERS}


@pytest.mark.thorough
def test_the_answering_model_copies_from_the_source_that_is_found() -> None:
    known = KnownSources.from_dict(_fact())
    writer = raison.load("demo/smollm2-answers")
    c = raison.cite(writer, known.question, known.sources, draws=0, within="source")
    assert same_answer(c.answer, known.answer)
    assert (c.top(0),) == known.gold
    # Its trained heads find it in one pass.
    c = raison.cite(writer, known.question, known.sources, answer=c.answer, method="at2", draws=0)
    assert (c.top(0),) == known.gold
    command = read_heads(zoo.folder_of("demo/smollm2-answers") / "at2", "").provenance["command"]
    assert command.startswith("raison train at2 --model demo/smollm2-answers")


def _fact() -> dict[str, Any]:
    """The first question of studies/cite_sources, which the model answers right."""
    path = Path(__file__).parents[2] / "studies" / "cite_sources" / "facts.jsonl"
    row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    return {name: value for name, value in row.items() if name != "number"}


@pytest.mark.parametrize("name", ["demo/sst2", "demo/emotion"])
def test_shipped_explainers_fit_their_models_and_say_where_they_come_from(name: str) -> None:
    folder = zoo.folder_of(name) / "aml"
    card = read_card(folder, name)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 4_000_000
    assert set(card.goals) == {
        "comprehensiveness",
        "sufficiency",
        "log_odds",
        "aopc_comprehensiveness",
        "aopc_sufficiency",
    }
    assert card.provenance["command"].startswith("raison train aml")
    model = loaded(name)
    for metric in card.goals:
        found = raison.explain(model, "i feel so happy and grateful today", f"aml(metric='{metric}')")
        top = {found.units[unit].text for unit in found.order()[:2]}
        assert top & {"happy", "grateful"}
        assert found.notes["trained_for"] == metric
        assert found.evaluations == 1


def test_a_shipped_explainer_beats_random_in_one_pass() -> None:
    metrics = ["comprehensiveness", "log_odds"]
    table = raison.compare(loaded("demo/sst2"), REVIEWS, ["aml"], metrics, unit="token", progress=False)
    aml, random = ([table[row][metric].values for metric in metrics] for row in ("aml", "random"))
    assert all(one > other for one, other in zip(aml[0], random[0], strict=True))
    assert all(one < other for one, other in zip(aml[1], random[1], strict=True))


@pytest.mark.thorough
def test_the_shipped_explainer_of_shapley_values_is_close_to_kernel_shap() -> None:
    card = amortized.read_card(zoo.folder_of("demo/sst2") / "amortized_shap", "demo/sst2")
    assert card.provenance["command"].startswith("raison train amortized-shap")
    model = loaded("demo/sst2")
    found, expected = (raison.explain(model, REVIEWS[:3], method) for method in ("amortized_shap", "kernel_shap"))
    fits = [np.corrcoef(f.scores, e.scores)[0, 1] for f, e in zip(found, expected, strict=True)]
    assert np.mean(fits) > 0.8
    assert {f.evaluations for f in found} == {1}


def test_methods_beat_random_on_real_weights() -> None:
    # With fewer samples than by default: chance is far away.
    methods = ["integrated_gradients(steps=12)", "kernel_shap(samples=64)", "lime(samples=100)", "occlusion"]
    table = raison.compare(loaded("demo/sst2"), REVIEWS, methods, ["comprehensiveness"], progress=False)
    random = np.array(table["random"]["comprehensiveness"].values)
    for method in methods:
        ahead = np.array(table[method]["comprehensiveness"].values) - random
        assert ahead.mean() > 0.01
        assert ahead.min() > -0.01


def test_integrated_gradients_converge_and_the_tap_reads_real_attention() -> None:
    model = loaded("demo/sst2")
    gaps = [
        abs(raison.explain(model, REVIEWS[0], f"integrated_gradients(steps={steps})").completeness_gap)
        for steps in (4, 64)
    ]
    assert gaps[1] < min(0.01, gaps[0])
    rollout = raison.explain(model, REVIEWS[0], "attention_rollout")
    assert 0 < sum(rollout.scores) < 1


def test_the_second_start_needs_no_network() -> None:
    """Every way to the network leads nowhere; the first start of this process has filled the cache."""
    zoo.resolve("demo/sst2")
    nowhere = "http://127.0.0.1:9"
    environment = {
        **os.environ,
        "PIP_INDEX_URL": nowhere,
        "PIP_NO_INDEX": "1",
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "HF_ENDPOINT": nowhere,
        "PATH": str(Path(sys.executable).parent),
    }
    command = [sys.executable, "-c", "from raison.cli import main; main()", "explain", REVIEWS[0], "--json"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout)["target"] == "positive"
