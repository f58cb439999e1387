"""Training a model to explain itself, end to end: tasks, kills, what is left alone, the card; the command."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoModel

import raison
from raison.core.targets.answer import Answer
from raison.data import Dataset, Row
from raison.models.derived.attention_explainer import InterpretableAttention
from raison.models.derived.trained_attention import find, read_card
from raison.training.loop.objective import TrainingBatch
from raison.training.objectives.task_and_criteria import TaskAndCriteria
from raison.training.recipes.ivra import fine_tune, train_ivra
from raison.training.settings.ivra import FineTuneSettings, IvraSettings
from tests.attention_explainers import PAIRS, span_adapter
from tests.contracts.test_methods import fingerprint
from tests.explainers import saved_encoder
from tests.integration.test_bad_input import run
from tests.planted import Killed, names_in
from tests.taught import DATA, NAMES, TEXTS
from tests.tiny import TINY

QUICK = IvraSettings(
    criteria=("comp",), epochs=2, batch_size=4, learning_rate=1e-3, validation=4, texts=8, progress=False
)
"""Two epochs of two steps."""
PLAIN = FineTuneSettings(epochs=1, batch_size=4, learning_rate=1e-3, texts=8, validation=4, progress=False)
ENTAILMENT = ("entailment", "neutral", "contradiction")
CLAIMS = Dataset(
    "claims",
    tuple(
        Row((text, f"somebody said: {text[:9]}"), ENTAILMENT[number % 3], number) for number, text in enumerate(TEXTS)
    ),
    labels=ENTAILMENT,
)
SAID = ("a modest story", "Dr. Smith", "1,000")
QUESTIONS = Dataset(
    "questions",
    tuple(
        Row((question, context), None, number, (), (Answer(context.find(said), context.find(said) + len(said), said),))
        for number, ((question, context), said) in enumerate(zip(PAIRS * 4, SAID * 4, strict=True))
    ),
)


def model_files(folder: Path) -> dict[str, dict[str, Tensor]]:
    return {name: load_file(folder / name) for name in ("model.safetensors", "ivra/explainer.safetensors")}


def same_files(one: Path, other: Path) -> bool:
    pairs = zip(model_files(one).values(), model_files(other).values(), strict=True)
    return all(a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a) for a, b in pairs)


def without_seconds(history: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in history.items() if name != "seconds"}


# Tasks


@pytest.mark.parametrize("task", ["texts", "pairs", "answers"])
def test_a_base_is_fine_tuned_and_then_explains_itself(task: str, tmp_path: Path) -> None:
    data = {"texts": replace(DATA, labels=NAMES), "pairs": CLAIMS, "answers": QUESTIONS}[task]
    base = saved_encoder(tmp_path / "base")
    state = torch.get_rng_state()
    card = fine_tune(base, data, tmp_path / "plain", PLAIN)
    assert torch.equal(torch.get_rng_state(), state)
    assert card["history"]["scores"].keys() == {"accuracy"}
    assert 0 <= card["accuracy"] <= 1
    plain = raison.load(str(tmp_path / "plain"))
    assert plain.classes == (("answer", "other answers") if task == "answers" else data.labels)
    before = AutoModel.from_pretrained(base).state_dict()["embeddings.word_embeddings.weight"]
    assert torch.equal(plain.core.get_input_embeddings().weight, before)
    criteria = ("comp", "suff") if task == "answers" else ("comp", "cons")
    found = train_ivra(plain, data, tmp_path / "out", replace(QUICK, criteria=criteria, norm="sparsemax"))
    assert found.classes == plain.classes
    loaded = raison.load(str(tmp_path / "out"))
    for explanation in raison.explain(loaded, list(data.texts[:3]), "ivra", unit="word"):
        assert sum(explanation.scores) == pytest.approx(1, abs=1e-5)
        assert explanation.notes["trained_for"] == ", ".join(found.criteria)
    assert names_in(tmp_path / "out") == sorted(
        {"config.json", "ivra", "model.safetensors", *names_in(tmp_path / "plain")} - {"fine_tuned.json"}
    )


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_a_decoder_learns_low_rank_matrices_that_are_merged(name: str, tmp_path: Path) -> None:
    model = raison.load(*TINY[name]())
    train_ivra(model, DATA, tmp_path, replace(QUICK, rank=2, learning_rate=0.01, criteria=("suff",)))
    loaded = raison.load(str(tmp_path))
    own, trained = model.core.state_dict(), loaded.core.state_dict()
    assert own.keys() == trained.keys()
    changes = {key: own[key] - trained[key] for key in own if own[key].ndim == 2 and "embed" not in key}
    for key, change in changes.items():
        if key == "score.weight":
            assert change.any()
        else:
            # Two thin matrices move a matrix in two directions.
            assert 1 <= int(torch.linalg.matrix_rank(change, rtol=1e-3)) <= 2, key
    assert torch.equal(loaded.core.get_input_embeddings().weight, model.core.get_input_embeddings().weight)
    explanation = raison.explain(loaded, TEXTS[0], "ivra")
    assert sum(explanation.scores) == pytest.approx(1, abs=1e-5)


# Kills


def mortal(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """The process ends in the given step."""
    loss, calls = TaskAndCriteria.loss, iter(range(1, 10**6))

    def dies(self: TaskAndCriteria, module: nn.Module, batch: TrainingBatch) -> Tensor:
        if next(calls) == call:
            raise Killed
        return loss(self, module, batch)

    monkeypatch.setattr(TaskAndCriteria, "loss", dies)


@pytest.mark.parametrize(
    ("call", "criteria", "more"),
    [(4, ("comp",), {}), (3, ("sim", "cons"), {"roll_back": True}), (4, ("sim",), {})],
    ids=["comp", "sim-cons-roll-back", "sim"],
)
def test_a_killed_run_ends_as_an_unbroken_one(
    call: int, criteria: tuple[str, ...], more: dict[str, object], tmp_path: Path
) -> None:
    student = saved_encoder(tmp_path / "student", "electra")
    settings = replace(QUICK, criteria=criteria, student=student, student_share=0.5, student_batch=2, **more)
    model = raison.load(*TINY["bert"]())
    wanted = train_ivra(model, DATA, tmp_path / "whole", settings)
    with pytest.MonkeyPatch.context() as patched:
        mortal(patched, call)
        with pytest.raises(Killed):
            train_ivra(model, DATA, tmp_path / "killed", settings)
    assert not (tmp_path / "killed" / "ivra").exists()
    torch.rand(7)
    found = train_ivra(model, DATA, tmp_path / "killed", settings)
    assert same_files(tmp_path / "whole", tmp_path / "killed")
    assert without_seconds(found.history) == without_seconds(wanted.history)
    assert names_in(tmp_path / "killed") == names_in(tmp_path / "whole")


def test_a_killed_fine_tuning_ends_as_an_unbroken_one(tmp_path: Path) -> None:
    base, data = saved_encoder(tmp_path / "base"), replace(DATA, labels=NAMES)
    settings = replace(PLAIN, epochs=2)
    wanted = fine_tune(base, data, tmp_path / "whole", settings)
    with pytest.MonkeyPatch.context() as patched:
        mortal(patched, 3)
        with pytest.raises(Killed):
            fine_tune(base, data, tmp_path / "killed", settings)
    found = fine_tune(base, data, tmp_path / "killed", settings)
    assert found["accuracy"] == wanted["accuracy"]
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(one[name], other[name]) for name in one)


# What is left alone, and what is noted


@pytest.mark.parametrize("rank", [None, 2])
def test_the_caller_s_model_and_random_state_are_as_before(rank: int | None, tmp_path: Path) -> None:
    model = raison.load(*TINY["bert"]())
    model.model.train()
    parameters = list(model.model.parameters())
    parameters[0].requires_grad_(False)
    parameters[1].grad = torch.ones_like(parameters[1])
    before, numpy_before = fingerprint(model), str(np.random.get_state())
    settings = replace(QUICK, rank=rank, criteria=("comp", "cons", "sim"))
    student = saved_encoder(tmp_path / "student", "electra")
    train_ivra(model, DATA, tmp_path / "out", replace(settings, student=student, learning_rate=0.05))
    assert fingerprint(model) == before
    assert str(np.random.get_state()) == numpy_before
    assert torch.equal(parameters[1].grad, torch.ones_like(parameters[1]))


def test_the_card_is_true(tmp_path: Path) -> None:
    settings = replace(QUICK, criteria=("comp", "suff(margin=0.2)", "clust"), weights=(1.0, 0.5, 2.0), checks=2)
    model = raison.load(*TINY["bert"]())
    card = train_ivra(model, DATA, tmp_path, settings, None, "the command")
    assert card == read_card(tmp_path / "ivra", "", "ivra") or json.loads(json.dumps(card.history)) == card.history
    assert card.criteria == ("comprehensiveness", "sufficiency(margin=0.2)", "clustering")
    assert card.provenance["command"] == "the command"
    assert [one["rows"] for one in card.provenance["data"]] == [12]
    history = card.history
    assert history["steps"] == [1, 2, 3, 4]
    names = ["comprehensiveness", "sufficiency", "clustering"]
    assert set(history["scores"]) == {"criteria", "accuracy", *names}
    assert list(history["losses"]) == names
    assert all(len(curve) == 4 for kind in ("scores", "losses") for curve in history[kind].values())
    heads, layers = np.array(history["coefficients"]["heads"]), history["coefficients"]["layers"]
    assert heads.shape == (len(layers), card.shape.heads) == (card.shape.layers, card.shape.heads)
    explainer = find(raison.load(str(tmp_path)), None, "ivra").explainer
    assert isinstance(explainer, InterpretableAttention)
    assert history["coefficients"] == asdict(explainer.multiples())
    assert heads.tolist() != np.ones(heads.shape).tolist()
    together = np.mean([history["scores"][name] for name in names], axis=0)
    assert history["scores"]["criteria"] == pytest.approx(together.tolist(), abs=1e-4)
    accuracy = card.provenance["accuracy"]
    kept = int(np.argmax(history["scores"]["criteria"]))
    assert accuracy["after"] == pytest.approx(history["scores"]["accuracy"][kept], abs=1e-4)
    # Strict JSON, which has no NaN.
    json.loads((tmp_path / "ivra" / "explainer.json").read_text(), parse_constant=pytest.fail)


def test_weights_of_criteria_count(tmp_path: Path) -> None:
    model, both = raison.load(*TINY["bert"]()), replace(QUICK, criteria=("comp", "suff"))
    for name, weights in (("plain", ()), ("ones", (1.0, 1.0)), ("others", (1.0, 3.0))):
        train_ivra(model, DATA, tmp_path / name, replace(both, weights=weights))
    assert same_files(tmp_path / "plain", tmp_path / "ones")
    assert not same_files(tmp_path / "plain", tmp_path / "others")


@pytest.mark.parametrize(
    ("selection", "moves"),
    [((), set()), (("head",), {"heads"}), (("feature", "layer"), {"query", "key", "layers"})],
)
def test_what_is_not_selected_stays(selection: tuple[str, ...], moves: set[str], tmp_path: Path) -> None:
    train_ivra(raison.load(*TINY["bert"]()), DATA, tmp_path, replace(QUICK, selection=selection, criteria=("suff_kl",)))
    state = load_file(tmp_path / "ivra" / "explainer.safetensors")
    assert {name for name, value in state.items() if (value != 1).any()} == moves
    assert read_card(tmp_path / "ivra", "", "ivra").design.selection == selection


def test_smat_is_saved_beside_and_found(tmp_path: Path) -> None:
    model = raison.load(*TINY["bert"]())
    train_ivra(model, DATA, tmp_path, replace(QUICK, form="smat", norm="sparsemax"))
    loaded = raison.load(str(tmp_path))
    assert sum(raison.explain(loaded, TEXTS[0], "smat").scores) == pytest.approx(1, abs=1e-5)
    with pytest.raises(raison.RaisonError, match="no trained attention explainer .* --form ivra"):
        raison.explain(loaded, TEXTS[0], "ivra")


def test_answers_move_towards_what_is_labelled(tmp_path: Path) -> None:
    model = span_adapter(tmp_path / "model")
    settings = replace(QUICK, epochs=12, learning_rate=3e-3, criteria=("suff",), texts=12, validation=3)
    card = train_ivra(model, QUESTIONS, tmp_path / "out", settings, QUESTIONS)
    accuracy = card.provenance["accuracy"]
    assert accuracy["after"] > accuracy["before"]
    loaded = raison.load(str(tmp_path / "out"))
    found = raison.explain(loaded, list(QUESTIONS.texts[:3]), "ivra")
    assert all(sum(one.scores) == pytest.approx(1, abs=1e-5) for one in found)


# The command line


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """raison train ivra on a tiny classifier's folder and a file of labelled texts; gives what it said."""
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    lines = [f"{row.text}\t{row.label}\n" for row in DATA.rows]
    (tmp_path / "data.tsv").write_text("text\tlabel\n" + "".join(lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def called(*arguments: str, fails: bool = False) -> str:
        code, out, err = run(monkeypatch, capsys, *arguments)
        assert code == (2 if fails else 0), err
        return err.splitlines()[-1] if fails else out

    return called


SMALL = "train ivra --data data.tsv --model model --out out --epochs 1 --batch-size 4".split()
SMALL += "--texts 8 --validation 4 --even-at-chance".split()


def test_a_model_at_chance_is_not_trained(command: Callable[..., str], tmp_path: Path) -> None:
    said = command(*SMALL[:-1], "--criteria", "comp", fails=True)
    assert "hardly learned its task" in said
    assert "--even-at-chance" in said
    assert not (tmp_path / "out").exists()
    assert "macro F1" in command(*SMALL, "--criteria", "comp")


def test_labels_of_a_base_may_be_words(tmp_path: Path) -> None:
    words = replace(DATA, rows=tuple(replace(row, label=f"so {row.label}") for row in DATA.rows), labels=())
    fine_tune(saved_encoder(tmp_path / "base"), words, tmp_path / "plain", PLAIN)
    assert raison.load(str(tmp_path / "plain")).classes == tuple(sorted({row.label for row in words.rows}))


def test_the_command_trains_and_the_method_finds_it(command: Callable[..., str], tmp_path: Path) -> None:
    more = ["--criteria", "comp,suff(margin=0.2)", "--weights", "1,0.5", "--norm", "sparsemax", "--first-words", "9"]
    said = command(*SMALL, *more, "--selection", "feature,head", "--decay", "0.5", "--lr", "1e-3")
    card = read_card(tmp_path / "out" / "ivra", "", "ivra")
    assert card.criteria == ("comprehensiveness", "sufficiency(margin=0.2)")
    assert (card.design.norm, card.design.selection) == ("sparsemax", ("feature", "head"))
    scores = dict(card.history["scores"])
    together = scores.pop("criteria")
    kept = together.index(max(together))
    for name, values in scores.items():
        assert f"{name} {values[kept]:.4f}" in said
    assert "raison explain TEXT --model out --method ivra" in said
    assert card.provenance["settings"]["weights"] == [1.0, 0.5]
    assert card.provenance["command"].startswith("raison train ivra ")
    assert str(tmp_path) not in card.provenance["command"]
    found = raison.Explanation.from_json(command("explain", TEXTS[0], "--model", "out", "--method", "ivra", "--json"))
    assert sum(found.scores) == pytest.approx(1, abs=1e-5)
    assert found.method == "ivra"
