"""Training an explainer end to end: what it learns and notes, what it costs, what it leaves alone; the command."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import raison
from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.data import Dataset
from raison.methods.aml import Aml
from raison.models.derived import explainers, trained_masks
from raison.numerics.losses.attributive_masking import LossWeights
from raison.training.loop.trainer import History
from raison.training.recipes import aml
from raison.training.recipes.aml import train_aml
from raison.training.settings.aml import AmlSettings
from tests.contracts.test_methods import fingerprint
from tests.integration.test_bad_input import run
from tests.planted import DATA, GIVEN, Planted, names_in, no_search, quick_settings, texts
from tests.tiny import TINY


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> AmlSettings:
    return quick_settings(tmp_path_factory.mktemp("backbone"))


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    return no_search(monkeypatch)


@pytest.fixture
def histories(monkeypatch: pytest.MonkeyPatch) -> list[History]:
    """Of every training and trial, in their order."""
    made: list[History] = []
    fit = aml.fit

    def noting(*arguments: object) -> History:
        made.append(fit(*arguments))
        return made[-1]

    monkeypatch.setattr(aml, "fit", noting)
    return made


def overlap(model: LanguageModel, data: Dataset, method: object) -> float:
    found = raison.explain(model, list(data.texts), method, unit="word")
    scores = raison.evaluate(model, found, ["ground_truth_overlap"], rationales=data.rationales)
    return scores["ground_truth_overlap"].summary.mean


def test_the_word_that_decides_is_found(quick: AmlSettings, tmp_path: Path) -> None:
    model, fresh = Planted(), texts(50, 1)
    settings = replace(quick, rank=None, weights=LossWeights(), checks=1)
    learns = replace(settings, texts=300, validation=40, epochs=8, batch_size=20)
    train_aml(model, texts(340, 0), tmp_path / "trained", learns)
    train_aml(model, DATA, tmp_path / "untrained", replace(settings, epochs=1, learning_rate=1e-12))
    found = {name: overlap(model, fresh, Aml(checkpoint=str(tmp_path / name))) for name in ("trained", "untrained")}
    assert found["trained"] > 0.95
    assert found["untrained"] < 0.5
    assert overlap(model, fresh, "random") < 0.3


def test_the_card_is_true_of_every_metric(
    quick: AmlSettings, tmp_path: Path, histories: list[History], searches: list[Sequence[str]]
) -> None:
    model, dev = Planted(), texts(8, 5)
    metrics = ("comprehensiveness", "sufficiency", "log_odds")
    card = train_aml(model, DATA, tmp_path, replace(quick, metrics=metrics), dev, "the command")
    assert searches == [metrics]
    # One training for the two metrics for which the same weights are best.
    assert [set(history.scores[0]) for history in histories] == [{"comprehensiveness", "log_odds"}, {"sufficiency"}]
    assert trained_masks.read_card(tmp_path, model.name).goals == card.goals
    assert list(card.goals) == list(metrics)
    for name, goal in card.goals.items():
        history = histories[name == "sufficiency"]
        assert goal.weights == {"prediction": 1.0, "inverse": 1.5 if name == "sufficiency" else 0.5, "size": 0.3}
        assert len(history.scores) == 6
        assert goal.step == history.steps[int(np.argmax([scores[name] for scores in history.scores]))]
        weights = history.best[name].weights
        state = load_file(tmp_path / goal.file)
        assert {f"attributor.{key}" for key in state} == set(weights)
        assert all(torch.equal(value, weights[f"attributor.{key}"].half()) for key, value in state.items())
        found = raison.explain(model, list(dev.texts), Aml(checkpoint=str(tmp_path), metric=name), unit="word")
        measured = raison.evaluate(model, found, [name])[name].summary.mean
        assert goal.validation == pytest.approx(measured, abs=1e-5)
        # Higher is better for the trainer, whatever the metric's direction.
        better = max(scores[name] for scores in history.scores)
        assert better == pytest.approx(measured if name == "comprehensiveness" else -measured, abs=0.01)
    assert card.provenance["command"] == "the command"
    assert [part["rows"] for part in card.provenance["data"]] == [40, 8]


def test_metrics_that_are_best_at_one_moment_share_a_file(quick: AmlSettings, tmp_path: Path) -> None:
    metrics = ("sufficiency", "comprehensiveness", "comprehensiveness(share=0.5)")
    once = replace(quick, metrics=metrics, weights=GIVEN, epochs=1, checks=1)
    card = train_aml(Planted(), DATA, tmp_path, once)
    assert {goal.file for goal in card.goals.values()} == {"sufficiency.safetensors"}
    assert names_in(tmp_path) == ["explainer.json", "sufficiency.safetensors"]


def test_one_search_serves_all_metrics(quick: AmlSettings, tmp_path: Path, histories: list[History]) -> None:
    metrics = ("comprehensiveness", "sufficiency")
    card = train_aml(Planted(), DATA, tmp_path, replace(quick, metrics=metrics))
    trials = card.provenance["trials"]
    assert [trial["number"] for trial in trials] == [0, 1, 2]
    for name, goal in card.goals.items():
        assert goal.weights == max(trials, key=lambda trial: trial["scores"][name])["weights"]
    assert len(histories) == 3 + len({tuple(goal.weights.values()) for goal in card.goals.values()})
    assert [len(history.losses) for history in histories[:3]] == [2, 2, 2]
    assert "search.jsonl" not in names_in(tmp_path)
    # Strict JSON, which has no NaN.
    json.loads((tmp_path / "explainer.json").read_text(), parse_constant=pytest.fail)


# What is left out


@pytest.mark.parametrize("without", [None, "prediction", "inverse"])
def test_a_loss_that_is_left_out_costs_no_pass(
    quick: AmlSettings, tmp_path: Path, searches: list[Sequence[str]], without: str | None
) -> None:
    model = Planted()
    card = train_aml(model, DATA, tmp_path, replace(quick, weights=GIVEN, without=without))
    assert searches == []
    # Each of the six steps is one pass over the batch's texts under each mask.
    assert model.rows == [16 if without is None else 8] * 6
    expected = {"prediction": 1.0, "inverse": 1.0, "size": 0.5} | ({} if without is None else {without: 0.0})
    assert card.goals["comprehensiveness"].weights == expected
    assert card.provenance["trials"] == []


@pytest.mark.parametrize("without", ["prediction", "inverse"])
def test_a_search_varies_only_what_is_not_left_out(quick: AmlSettings, tmp_path: Path, without: str) -> None:
    model = Planted()
    card = train_aml(model, DATA, tmp_path, replace(quick, without=without))
    assert model.rows == [8] * 12
    assert card.goals["comprehensiveness"].weights[without] == 0
    kept = {"prediction", "inverse", "size"} - {without}
    assert all(set(trial["weights"]) == kept for trial in card.provenance["trials"])


# The caller's model


def test_every_whole_text_is_predicted_once(quick: AmlSettings, tmp_path: Path) -> None:
    model = Planted()
    train_aml(model, DATA, tmp_path, quick)
    used = {text: count for text, count in model.whole.items() if text in DATA.texts}
    assert list(used.values()) == [1] * 32
    assert set(model.whole) - set(used) == set(explainers.PROBES)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("rank", [2, None])
def test_the_explained_model_and_the_random_state_are_as_before(
    quick: AmlSettings, tmp_path: Path, rank: int | None
) -> None:
    model = raison.load(*TINY["bert"]())
    model.model.train()
    parameters = list(model.model.parameters())
    parameters[0].requires_grad_(False)
    parameters[1].grad = torch.ones_like(parameters[1])
    model.core.bert.register_forward_hook(lambda module, inputs, output: None)
    before, numpy_before = fingerprint(model), str(np.random.get_state())
    short = replace(quick, trials=1, epochs=1)
    card = train_aml(model, DATA, tmp_path, replace(short, backbone=None, rank=rank, learning_rate=0.05))
    assert card.backbone == "own"
    assert fingerprint(model) == before
    assert str(np.random.get_state()) == numpy_before
    assert torch.equal(parameters[1].grad, torch.ones_like(parameters[1]))
    assert all(any(own is now for now in model.model.parameters()) for own in parameters)


# The command line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A classifier's folder beside a file of labelled texts."""
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    lines = [f"{row.text}\t{row.number % 2}\n" for row in texts(60, 0).rows]
    (tmp_path / "planted.tsv").write_text("text\tlabel\n" + "".join(lines))
    return tmp_path / "model"


SMALL = "--texts 16 --validation 8 --epochs 1 --batch-size 8 --trials 2 --search-texts 8 --search-epochs 1 --rank 2"
SMALL += " --even-at-chance"


def test_the_command_writes_where_the_method_looks(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    more = ["--metrics", "sufficiency,log_odds", "--longest", "8", "--first-words", "9", "--dev", "planted.tsv"]
    arguments = ["train", "aml", "--data", str(folder.parent / "planted.tsv"), "--model", str(folder), *SMALL.split()]
    code, out, err = run(monkeypatch, capsys, *arguments, *more, "--validation", "30")
    assert (code, out.count("\n")) == (0, 1), err
    card = trained_masks.read_card(folder / "aml", "")
    for name, goal in card.goals.items():
        assert f"{name} {goal.validation:.4f}" in out
    assert list(card.goals) == ["sufficiency", "log_odds"]
    command = card.provenance["command"]
    assert command.startswith("raison train aml --data planted.tsv --dev planted.tsv --model model ")
    assert str(folder.parent) not in command
    data = card.provenance["data"][0]
    assert data["name"].endswith("planted.tsv, the first 9 words, texts of at most 8 words")
    assert data["rows"] == sum(len(text.split()) <= 8 for text in texts(60, 0).texts) < 60
    assert card.provenance["settings"]["search_texts"] == 8
    assert {path.suffix for path in (folder / "aml").iterdir()} == {".json", ".safetensors"}
    code, out, err = run(
        monkeypatch, capsys, "explain", DATA.texts[0], "--model", str(folder), "--method", "aml", "--json"
    )
    assert code == 0, err
    explanation = raison.Explanation.from_json(out)
    assert (explanation.method, explanation.notes["trained_for"]) == ("aml", "sufficiency")
    assert all(0 <= score <= 1 for score in explanation.scores)


def test_a_model_at_chance_is_not_explained(quick: AmlSettings, tmp_path: Path) -> None:
    model = Planted()
    predicted = [e.prediction for e in raison.explain(model, list(DATA.texts), "random")]
    # Another label than the predicted one for each text.
    labels = [next(name for name in model.classes if name != said) for said in predicted]
    wrong = replace(DATA, rows=tuple(replace(r, label=name) for r, name in zip(DATA.rows, labels, strict=True)))
    settings = replace(quick, weights=LossWeights(), above_chance=True)
    with pytest.raises(InputError, match="is right on 0.0 % of the held-out texts"):
        train_aml(model, wrong, tmp_path / "out", settings)
    assert not (tmp_path / "out").exists()
    # Labels of another task say nothing of the model.
    other = replace(DATA, rows=tuple(replace(r, label="elsewhere") for r in DATA.rows), labels=())
    with pytest.warns(UserWarning, match="not tested whether .* has learned its task: "):
        train_aml(model, other, tmp_path / "other", settings)


def test_the_command_says_what_is_wrong_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    usual = ("train", "aml", "--data", "planted.tsv", "--model", "model", *SMALL.split())
    for arguments, said in (
        ("--texts 100", "108 are needed"),
        ("--longest 1", "has 0 texts"),
        ("--data missing.tsv", "missing.tsv"),
        ("--weights 1,2", "give three numbers"),
        ("--weights 1,one,2", "give three numbers"),
        ("--weights 0,0,1", "nothing would be explained"),
        ("--weights -1,1,1", "'prediction' cannot be -1.0"),
        ("--weights nan,1,1", "'prediction' cannot be nan"),
        ("--metrics sufficency", "Did you mean 'sufficiency'"),
        ("--metrics consistency", "evaluates many texts together"),
        ("--metrics auroc", "auroc needs rationales"),
        ("--masking masks", "Did you mean 'mask'"),
        ("--merge sum", "unknown"),
        ("--size l2", "Did you mean 'l1'"),
        ("--unit words", "Did you mean 'word'"),
        ("--without size", "unknown without 'size'"),
        ("--lr 0", "learning_rate cannot be 0.0"),
        ("--lr 1e30", "every one of the 2 trials diverged"),
    ):
        code, out, err = run(monkeypatch, capsys, *usual, *arguments.split())
        assert (code, out) == (2, ""), arguments
        last = err.splitlines()[-1]
        assert last.startswith("raison: "), arguments
        assert said in last
        # Beside it, what was taken from the file.
        told = [line for line in err.splitlines() if line.startswith("raison: ") and "; label: " not in line]
        assert len(told) == 1, err
        assert not (folder / "aml").exists(), arguments
