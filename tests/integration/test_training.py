"""Training a classifier end to end on a tiny random model and invented rows."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file as tensors_of
from torch import Tensor, nn
from transformers import BertConfig, BertModel
from typer.testing import CliRunner

from raison.cli.train.commands import app
from raison.core.errors import InputError, LoadError, UnknownNameError
from raison.data import Dataset, Row, load_file
from raison.models.loading.ready_made import zoo
from raison.training.loop.objective import TrainingBatch
from raison.training.objectives.cross_entropy import CrossEntropy
from raison.training.recipes.classifier import ClassifierSettings, Splits, labels_of, train_classifier
from tests.tokenizers import TOKENIZERS

LABELS = ("bad", "good")
QUICK = ClassifierSettings(epochs=2, batch_size=8, learning_rate=0.01, rank=4, dropout=0.1, progress=False)


class Killed(BaseException):
    """Stands for the end of the process."""


def dies_at(call: int) -> Callable[[], bool]:
    calls = iter(range(1, 10**6))
    return lambda: next(calls) == call


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny random BERT."""
    folder = tmp_path_factory.mktemp("base")
    tokenizer = TOKENIZERS["bert_uncased"]()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Splits:
    """Sentences that one word decides."""
    draw = random.Random(0)
    for name, count in (("train", 160), ("test", 40)):
        lines = []
        for _ in range(count):
            label = draw.randrange(2)
            words = draw.choices("the film story music sailor sea was told about".split(), k=draw.randint(2, 9))
            words.insert(draw.randrange(len(words)), ("terrible", "wonderful")[label])
            lines.append(f"{' '.join(words)}\t{label}\n")
        (tmp_path / f"{name}.tsv").write_text("text\tlabel\n" + "".join(lines))
    return Splits(*(load_file(tmp_path / f"{name}.tsv") for name in ("train", "test")))


def test_a_classifier_is_trained_saved_and_loaded_again(base: Path, data: Splits, tmp_path: Path) -> None:
    settings = replace(QUICK, labels=LABELS, epochs=6, limit=150)
    out = tmp_path / "out"
    before = torch.get_rng_state()
    card = train_classifier(str(base), data, out, settings, "raison train classifier ...")
    assert torch.equal(torch.get_rng_state(), before)
    assert card["accuracy"]["test"] > 0.9
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md",
        "adapter_config.json",
        "adapter_model.safetensors",
        "card.json",
        "training.json",
    ]
    model, tokenizer = zoo.load_adapter(out)
    assert torch.equal(torch.get_rng_state(), before)
    assert model.config.id2label == {0: "bad", 1: "good"}
    assert not model.training
    assert type(model).__name__ == "BertForSequenceClassification"
    batch = tokenizer(["the terrible film", "the wonderful film"], padding=True, return_tensors="pt")
    with torch.no_grad():
        assert model(**batch).logits.argmax(-1).tolist() == [0, 1]


def test_the_card_says_how_it_was_made(base: Path, data: Splits, tmp_path: Path) -> None:
    out = tmp_path / "out"
    card = train_classifier(str(base), data, out, replace(QUICK, labels=LABELS, limit=40, seed=3), "the command")
    assert json.loads((out / "card.json").read_text()) == card
    assert card["labels"] == ["bad", "good"]
    assert card["data"]["train"] == {
        "name": f"{tmp_path.name}/train.tsv",
        "sha256": data.train.sha256,
        "rows": 160,
    }
    assert card["data"]["test"]["rows"] == 40
    assert card["training"]["rows"] == 40
    assert card["settings"]["seed"] == 3
    assert card["command"] == "the command"
    assert set(card["versions"]) == {"python", "torch", "transformers", "peft"}
    page = (out / "README.md").read_text()
    assert "the command" in page
    classes = card["f1"]["test"]["classes"]
    assert list(classes) == ["bad", "good"]
    assert f"test accuracy {card['accuracy']['test']:.4f}, macro F1 {card['f1']['test']['macro']:.4f} (" in page
    assert f"(bad {classes['bad']:.4f}, good {classes['good']:.4f})" in page


def test_a_killed_classifier_goes_on(base: Path, data: Splits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = replace(QUICK, labels=LABELS, checkpoint_every=4)
    whole = train_classifier(str(base), data, tmp_path / "whole", settings)
    loss, die = CrossEntropy.loss, dies_at(15)

    def mortal(self: CrossEntropy, module: nn.Module, batch: TrainingBatch) -> Tensor:
        if die():
            raise Killed
        return loss(self, module, batch)

    monkeypatch.setattr(CrossEntropy, "loss", mortal)
    with pytest.raises(Killed):
        train_classifier(str(base), data, tmp_path / "cut", settings)
    assert (tmp_path / "cut" / "training.checkpoint").exists()
    assert not (tmp_path / "cut" / "card.json").exists()
    resumed = train_classifier(str(base), data, tmp_path / "cut", replace(settings, checkpoint_every=5))
    name = "adapter_model.safetensors"
    assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert resumed["accuracy"] == whole["accuracy"]


def test_half_precision_learns_too(base: Path, data: Splits, tmp_path: Path) -> None:
    settings = replace(QUICK, labels=LABELS, epochs=6, half=True)
    assert train_classifier(str(base), data, tmp_path / "out", settings)["accuracy"]["test"] > 0.9


def test_labels_that_do_not_fit(base: Path, data: Splits, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--labels"):
        train_classifier(str(base), data, tmp_path / "out", QUICK)
    with pytest.raises(InputError, match="needs at least two classes, and only only is named"):
        train_classifier(str(base), data, tmp_path / "out", replace(QUICK, labels=("only",)))
    unlabelled = Dataset("d", tuple(replace(row, label=None) for row in data.train.rows))
    with pytest.raises(InputError, match="needs a label"):
        train_classifier(str(base), Splits(unlabelled, data.test), tmp_path / "out", QUICK)


def test_the_command(base: Path, data: Splits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["classifier", "--train", str(tmp_path / "train.tsv"), "--test", "test.tsv", "--dev", "test.tsv"]
    arguments += ["--base", str(base), "--out", "out", "--labels", "bad,good", "--epochs", "1", "--limit", "24"]
    result = CliRunner().invoke(app, [*arguments, "--keep-best"])
    assert result.exit_code == 0, result.output
    assert "test accuracy" in result.output
    card = zoo.read_card(tmp_path / "out")
    assert set(card["accuracy"]) == {"dev", "test"}
    assert "--train train.tsv --test test.tsv --dev test.tsv --out out" in card["command"]
    assert card["command"].endswith("--labels bad,good --epochs 1 --limit 24 --keep-best")


def test_names_of_ready_made_models(tmp_path: Path) -> None:
    assert all(name.startswith("demo/") for name in zoo.names())
    with pytest.raises(UnknownNameError, match="demo model"):
        zoo.resolve("demo/none")
    with pytest.raises(LoadError, match=r"card\.json"):
        zoo.load_adapter(tmp_path)


def stars(labels: list[int], first: int) -> Dataset:
    words = {1: "dreadful", 2: "middling", 3: "splendid"}
    rows = (Row(f"a {words[label]} film", label - 1 + first, n) for n, label in enumerate(labels))
    return Dataset(f"stars {len(labels)}", tuple(rows))


@pytest.mark.parametrize("limit", [None, 12])
def test_numbers_from_one_are_the_same_classes_in_every_part(base: Path, tmp_path: Path, limit: int | None) -> None:
    """Also where a part has no row of the highest class: then they teach what numbers from zero teach."""
    settings = replace(QUICK, labels=("bad", "fine", "good"), limit=limit)
    cards = []
    for first in (0, 1):
        splits = Splits(stars([1, 2] * 12 + [3], first), stars([1, 2, 1, 1], first))
        cards.append(train_classifier(str(base), splits, tmp_path / str(first), settings))
    assert cards[0]["f1"] == cards[1]["f1"]
    assert cards[0]["accuracy"] == cards[1]["accuracy"]
    zero, one = (tensors_of(tmp_path / str(first) / zoo.ADAPTER) for first in (0, 1))
    assert all(torch.equal(zero[name], one[name]) for name in zero)


@pytest.mark.parametrize(
    ("labels", "said"),
    [(("a", "b", "a"), "must differ in more than case; got a, a"), (("A", "a"), "got A, a"), (("a",), "at least two")],
)
def test_names_of_classes_differ(base: Path, data: Splits, tmp_path: Path, labels: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        train_classifier(str(base), data, tmp_path / "out", replace(QUICK, labels=labels))


def test_labels_that_differ_in_case_are_one_class() -> None:
    rows = [Row("a", label, n) for n, label in enumerate(["Good", "good", "good", "bad"])]
    assert labels_of(Dataset("d", tuple(rows))) == ("bad", "good")


def test_texts_are_cut_where_the_base_ends(base: Path, tmp_path: Path) -> None:
    long = Dataset("long", tuple(Row("sea rain " * 100 + str(n), n % 2, n) for n in range(8)))
    short = Dataset("short", tuple(Row(f"sea {n}", n % 2, n) for n in range(4)))
    settings = replace(QUICK, labels=LABELS, epochs=1, max_tokens=400)
    train_classifier(str(base), Splits(long, short), tmp_path / "out", settings)
    assert (tmp_path / "out" / zoo.ADAPTER).exists()
    assert zoo.read_card(tmp_path / "out")["settings"]["max_tokens"] == 400, "as it was asked for"
