"""Training end to end on a tiny random model and invented rows."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel
from typer.testing import CliRunner

from raison.cli.train import app
from raison.core.errors import InputError, LoadError, NonFiniteError, UnknownNameError
from raison.data import Dataset, load_file
from raison.models import zoo
from raison.training import checkpoint
from raison.training.classifier import ClassifierSettings, Splits, train_classifier
from raison.training.objective import Batch, Objective
from raison.training.objectives.cross_entropy import CrossEntropy
from raison.training.trainer import TrainSettings, fit, learning_rate
from tests.tokenizers import TOKENIZERS

LABELS = ("bad", "good")
QUICK = ClassifierSettings(epochs=2, batch_size=8, learning_rate=0.01, rank=4, dropout=0.1, progress=False)


class Killed(BaseException):
    """Stands for the end of the process."""


@dataclass(frozen=True)
class Mortal(Objective):
    """Cross-entropy that dies at one of its calls; equal to the immortal one where names are compared."""

    die: Callable[[], bool]

    def __repr__(self) -> str:
        return "mortal"

    def loss(self, module: nn.Module, batch: Batch) -> Tensor:
        if self.die():
            raise Killed
        return CrossEntropy().loss(module, batch)


class Points:
    """Twenty batches of random points in the plane, labelled by the half they lie in."""

    def __len__(self) -> int:
        return 20

    def epoch(self, number: int, start: int) -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(number)
        for index in range(20):
            points = torch.randn(8, 2, generator=generator)
            if index >= start:
                yield Batch({"points": points}, (points[:, 0] > 0).long())


class Net(nn.Module):
    """Two layers with dropout, so that the random state matters, and a frozen parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return self.layers(inputs["points"])


def net() -> Net:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return Net()


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def dies_at(call: int) -> Callable[[], bool]:
    calls = iter(range(1, 10**6))
    return lambda: next(calls) == call


PLAN = TrainSettings(epochs=3, learning_rate=0.02, seed=5, checkpoint_every=7, progress=False)


def test_learning_reduces_the_loss_and_leaves_the_random_state_alone() -> None:
    module = net()
    before = torch.get_rng_state()
    history = fit(PLAN, module, Points(), CrossEntropy())
    assert torch.equal(torch.get_rng_state(), before)
    assert len(history.losses) == 60
    assert sum(history.losses[-10:]) < 0.6 * sum(history.losses[:10])
    assert not module.training
    assert torch.equal(module.frozen, torch.ones(3))


@pytest.mark.parametrize("call", [3, 8, 21, 45, 60])
def test_a_killed_run_ends_as_an_uninterrupted_one(tmp_path: Path, call: int) -> None:
    whole, stopped = net(), net()
    scores = iter([0.5, 0.9, 0.7, 0.9, 0.7])
    plan = replace(PLAN, keep_best=True)
    wanted = fit(plan, whole, Points(), Mortal(lambda: False), lambda module: next(scores))
    scores = iter([0.5, 0.9, 0.7])
    plan = replace(plan, checkpoint=tmp_path / "run" / "state")
    with pytest.raises(Killed):
        fit(plan, stopped, Points(), Mortal(dies_at(call)), lambda module: next(scores))
    stopped = net()
    torch.rand(13)
    found = fit(plan, stopped, Points(), Mortal(lambda: False), lambda module: next(scores))
    assert found == wanted
    assert same(stopped.state_dict(), whole.state_dict())
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["state"]


def test_the_best_epoch_is_kept() -> None:
    module, states = net(), []
    scores = iter([0.5, 0.9, 0.7])

    def evaluate(trained: nn.Module) -> float:
        assert not trained.training
        states.append(checkpoint.trainable_state(trained))
        return next(scores)

    history = fit(replace(PLAN, keep_best=True), module, Points(), CrossEntropy(), evaluate)
    assert history.scores == (0.5, 0.9, 0.7)
    assert same(checkpoint.trainable_state(module), states[1])
    assert not same(states[1], states[2])


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    plan = replace(PLAN, epochs=1, checkpoint=tmp_path / "state")
    fit(plan, net(), Points(), CrossEntropy())
    with pytest.raises(InputError, match="other settings or data"):
        fit(replace(plan, learning_rate=0.01), net(), Points(), CrossEntropy())
    with pytest.raises(InputError, match="other settings or data"):
        fit(replace(plan, identity="other data"), net(), Points(), CrossEntropy())
    (tmp_path / "state").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="cannot read the checkpoint"):
        fit(plan, net(), Points(), CrossEntropy())


def test_settings_that_cannot_be_used() -> None:
    for wrong in ({"epochs": 0}, {"learning_rate": 0.0}, {"keep_best": True}, {"checkpoint_every": 0}):
        with pytest.raises(InputError):
            fit(replace(PLAN, **wrong), net(), Points(), CrossEntropy())
    frozen = net().requires_grad_(False)
    with pytest.raises(InputError, match="no trainable parameters"):
        fit(PLAN, frozen, Points(), CrossEntropy())


def test_a_loss_that_is_no_number_stops_the_run() -> None:
    module = net()
    nn.init.constant_(module.layers[0].weight, float("nan"))
    with pytest.raises(NonFiniteError, match="lower the learning rate"):
        fit(PLAN, module, Points(), CrossEntropy())


def test_the_rate_rises_then_falls_to_nothing() -> None:
    rates = [learning_rate(replace(PLAN, learning_rate=1.0, warmup=0.2), step, 10) for step in range(10)]
    assert rates[:3] == [0.5, 1.0, 1.0]
    assert rates[2:] == pytest.approx([1 - n / 8 for n in range(8)])


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
    assert f"test {card['accuracy']['test']:.4f}" in page


def test_a_killed_classifier_goes_on(base: Path, data: Splits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = replace(QUICK, labels=LABELS, checkpoint_every=4)
    whole = train_classifier(str(base), data, tmp_path / "whole", settings)
    loss, die = CrossEntropy.loss, dies_at(15)

    def mortal(self: CrossEntropy, module: nn.Module, batch: Batch) -> Tensor:
        if die():
            raise Killed
        return loss(self, module, batch)

    monkeypatch.setattr(CrossEntropy, "loss", mortal)
    with pytest.raises(Killed):
        train_classifier(str(base), data, tmp_path / "cut", settings)
    assert (tmp_path / "cut" / "training.checkpoint").exists()
    assert not (tmp_path / "cut" / "card.json").exists()
    resumed = train_classifier(str(base), data, tmp_path / "cut", settings)
    name = "adapter_model.safetensors"
    assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert resumed["accuracy"] == whole["accuracy"]


def test_half_precision_learns_too(base: Path, data: Splits, tmp_path: Path) -> None:
    settings = replace(QUICK, labels=LABELS, epochs=6, half=True)
    assert train_classifier(str(base), data, tmp_path / "out", settings)["accuracy"]["test"] > 0.9


def test_labels_that_do_not_fit(base: Path, data: Splits, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--labels"):
        train_classifier(str(base), data, tmp_path / "out", QUICK)
    with pytest.raises(InputError, match="none of only"):
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
    assert "--train train.tsv --test test.tsv --out out --dev test.tsv" in card["command"]
    assert card["command"].endswith("--labels bad,good --epochs 1 --limit 24 --keep-best")


def test_names_of_ready_made_models(tmp_path: Path) -> None:
    assert all(name.startswith("demo/") for name in zoo.names())
    with pytest.raises(UnknownNameError, match="demo model"):
        zoo.resolve("demo/none")
    with pytest.raises(LoadError, match=r"card\.json"):
        zoo.load_adapter(tmp_path)


@pytest.mark.demo
@pytest.mark.parametrize("name", [name for name in zoo.names() if not zoo.is_language_model(name)])
def test_ready_made_models_load(name: str) -> None:
    model, tokenizer = zoo.load_demo(name)
    with torch.no_grad():
        logits = model(**tokenizer("a wonderful film", return_tensors="pt")).logits
    assert logits.shape == (1, len(zoo.resolve(name).card["labels"]))
    assert logits.isfinite().all()
