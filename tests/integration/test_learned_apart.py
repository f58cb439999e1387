"""No training is judged on a data set that shares texts with one that its model learned from."""

import json
from pathlib import Path

import pytest

from raison.cli.train.commands import app
from raison.core.errors import InputError
from raison.data import Dataset
from raison.training.preparation.data_leakage import check_apart, known_to, learned_by
from tests.integration.test_bad_input import run
from tests.tiny import TINY

COMMANDS = {
    "classifier": "--train sst2:test --test mr:test",
    "scratch": "--train sst2:test --dev mr:test --architecture bert",
    "aml": "--data sst2:test --dev mr:test --model model",
    "amortized-shap": "--data sst2:test --dev mr:test --model model",
    "ivra": "--data sst2:test --dev mr:test --model model --criteria comp",
}

OWN_PARTS = {"answers", "at2"}
"""Commands that take no second set to judge by: they hold out a part of the one that they learn from."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data root with two sets that share texts, and a tiny classifier."""
    (tmp_path / "data/sst2_glue").mkdir(parents=True)
    (tmp_path / "data/sst2_glue/sentiment-dev.tsv").write_text("a quiet film\t1\na poor film\t0\n" * 5)
    (tmp_path / "data/mr").mkdir()
    (tmp_path / "data/sst2_glue/sentiment-test.tsv").write_text("a good film\t1\na dull film\t0\n" * 20)
    for end in ("neg", "pos"):
        (tmp_path / f"data/mr/rt-polarity.{end}").write_text(f"{end} film\n" * 5331)
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    monkeypatch.setenv("RAISON_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_is_here() -> None:
    callbacks = [command.callback for command in app.registered_commands if command.callback]
    names = {callback.__name__.replace("_", "-") for callback in callbacks}
    assert names == {*COMMANDS, *OWN_PARTS}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_refuses_texts_that_its_model_learned_from(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(monkeypatch, capsys, "train", name, *COMMANDS[name].split(), "--out", "out")
    assert (code, err.splitlines()[-1]) == (
        2,
        "raison: mr shares texts with sst2, on which the model was trained: test it on other data.",
    )
    assert not (place / "out").exists()


def test_a_ready_made_model_says_what_it_learned_from() -> None:
    assert [name.partition("/")[0] for name in learned_by("demo/sst2")] == ["sst2_glue"]
    assert learned_by("somebody/elses") == []
    with pytest.raises(InputError, match="mr shares texts with sst2"):
        check_apart(["my.tsv", *learned_by("demo/sst2")], [None, Dataset("mr/dev", ())])
    check_apart(learned_by("demo/sst2"), [None, Dataset("sst2/dev", ()), Dataset("my.tsv", ())])


def test_a_training_says_and_records_that_its_model_knows_the_texts(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "model/card.json").write_text(json.dumps({"data": {"train": {"name": "sst2/test"}}}))
    typed = "train ivra --data sst2:test --model model --criteria suff --epochs 1 --rank 2 --even-at-chance --out"
    _, _, err = run(monkeypatch, capsys, *typed.split(), "same")
    assert "raison: model itself was trained on sst2/test: the held-out texts may be among its" in err
    _, _, err = run(monkeypatch, capsys, *typed.split(), "apart", "--dev", "sst2:dev")
    assert "itself was trained on" not in err
    for name, known in {"same": True, "apart": False}.items():
        card = json.loads((place / name / "ivra/explainer.json").read_text())
        assert card["provenance"]["held_out_in_model_training"] is known


def test_a_model_knows_the_split_or_the_file_that_it_learned_from(tmp_path: Path) -> None:
    assert known_to("demo/sst2", Dataset("sst2/train (Hub: stanfordnlp/sst2, train)", ()))
    assert not known_to("demo/sst2", Dataset("sst2/dev", ()))
    # The splits of this set are parts of the same files.
    [sha256] = {"2a2a42ae67044932736c70bf7daf1eeb74aeda6cc4034c90e2c014cc362ca753"}
    assert known_to("demo/rotten_tomatoes", Dataset("mr/train", (), sha256=sha256))
    assert not known_to("demo/rotten_tomatoes", Dataset("mr/test", (), sha256=sha256))
    # A model that was trained to explain itself.
    (tmp_path / "ivra").mkdir()
    (tmp_path / "config.json").write_text("{}")
    card = {"provenance": {"data": [{"name": "a/my.csv", "sha256": "12"}, {"name": "a/dev.csv", "sha256": "34"}]}}
    (tmp_path / "ivra/explainer.json").write_text(json.dumps(card))
    assert known_to(str(tmp_path), Dataset("b/copy.csv", (), sha256="12"))
    assert not known_to(str(tmp_path), Dataset("a/my.csv", (), sha256="56"))
    assert not known_to(str(tmp_path), Dataset("a/dev.csv", (), sha256="34"))
    (tmp_path / "card.json").write_text("[")
    assert not known_to(str(tmp_path), Dataset("hub/set", ()))
