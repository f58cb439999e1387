"""Models that a study makes itself: trained once, from a table, whatever interrupts them."""

import json
import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import T5Config, T5ForConditionalGeneration
from typer.testing import CliRunner

import raison
from raison.cli.train.commands import app
from raison.core.capabilities.passes import Passes
from raison.core.errors import DataError, InputError, LoadError
from raison.data.dataset import Dataset, Row
from raison.models.loading.ready_made.zoo import fresh_classifier
from raison.models.loading.t5_encoder import T5EncoderForSequenceClassification
from raison.studies import made
from raison.studies.file import StudyError, read
from raison.studies.plans import load_named_model
from raison.studies.runner import run
from raison.training.loop.objective import TrainingBatch
from raison.training.objectives.cross_entropy import CrossEntropy
from raison.training.recipes.scratch import ScratchSettings, train_scratch
from tests.tiny import TINY

WORDS = "the film story music sailor sea was told about and quiet loud".split()
QUICK = ScratchSettings(
    architecture="t5_encoder", width=16, heads=2, vocabulary=330, epochs=3, batch_size=8, masked=0.5, progress=False
)
STUDY = """
schema = 1
title = "One small model"
methods = ["saliency"]
metrics = ["ground_truth_overlap"]

[models.small]
name = "small t5"
labels = ["negative", "positive"]

[models.small.made]
architecture = "t5_encoder"
layers = 1
width = 16
heads = 2
vocabulary = 330
epochs = 1
train = { source = "lines.tsv", known_features = {} }

[data.lines]
source = "lines.tsv"
limit = 4
known_features = {}
"""


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts, a study of them, and a cache of its own."""
    draw = random.Random(0)
    lines = [f"{' '.join(draw.choices(WORDS, k=draw.randint(2, 7)))}\t{draw.randrange(2)}" for _ in range(60)]
    (tmp_path / "lines.tsv").write_text("text\tlabel\n" + "\n".join(lines) + "\n")
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def decided(count: int, seed: int) -> Dataset:
    """Sentences that one word decides."""
    draw = random.Random(seed)
    rows = [(draw.choices(WORDS, k=draw.randint(2, 7)), draw.randrange(2)) for _ in range(count)]
    made_of = [(f"{' '.join(words)} {('terrible', 'wonderful')[label]}", label) for words, label in rows]
    return Dataset(
        f"decided {seed}",
        tuple(Row(text, label, number) for number, (text, label) in enumerate(made_of)),
        labels=("bad", "good"),
    )


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("architecture", ["bert", "gpt2", "roberta", "t5_encoder"])
def test_a_small_model_learns_what_one_word_decides(architecture: str, tmp_path: Path) -> None:
    settings = replace(QUICK, architecture=architecture, layers=1, width=32, epochs=12, learning_rate=5e-3)
    before = torch.get_rng_state()
    card = train_scratch(decided(160, 0), decided(40, 1), tmp_path / "out", settings, "told")
    assert torch.equal(torch.get_rng_state(), before)
    model = raison.load(tmp_path / "out")
    assert model.classes == ("bad", "good")
    held_out = decided(40, 1)
    predicted = model.ask(Passes).predicted(model.encode(list(held_out.texts), "word"))[:, 0].tolist()
    right = sum(found == row.label for found, row in zip(predicted, held_out.rows, strict=True))
    assert card["accuracy"]["held_out"] == pytest.approx(right / 40, abs=1e-4)
    assert right >= 39
    assert card["accuracy"]["held_out"] == max(card["epochs"])
    assert card["command"] == "told"
    assert not (tmp_path / "out" / "training.checkpoint").exists()


def test_a_killed_training_goes_on_to_the_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (decided(48, 0), decided(16, 1))
    train_scratch(*data, tmp_path / "whole", QUICK)
    loss, calls = CrossEntropy.loss, iter(range(1, 1000))

    def dies(objective: CrossEntropy, module: nn.Module, batch: TrainingBatch) -> Tensor:
        if next(calls) == 9:
            raise Killed
        return loss(objective, module, batch)

    with monkeypatch.context() as patched:
        patched.setattr(CrossEntropy, "loss", dies)
        with pytest.raises(Killed):
            train_scratch(*data, tmp_path / "killed", QUICK)
    assert not (tmp_path / "killed" / "card.json").exists()
    steps = []
    with monkeypatch.context() as patched:
        patched.setattr(CrossEntropy, "loss", lambda *args: (steps.append(1), loss(*args))[1])
        train_scratch(*data, tmp_path / "killed", QUICK)
    assert len(steps) == 12, "the last two epochs of six batches"
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_base_is_trained_whole_or_by_adapters(tmp_path: Path) -> None:
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    before = load_file(tmp_path / "base" / "model.safetensors")
    table = "bert.embeddings.word_embeddings.weight"
    for rank, same in ((None, False), (2, True)):
        out = tmp_path / f"rank {rank}"
        settings = ScratchSettings(base=str(tmp_path / "base"), rank=rank, epochs=1, batch_size=8, progress=False)
        train_scratch(three_classes(), three_classes(), out, settings)
        after = load_file(out / "model.safetensors")
        assert after.keys() == before.keys(), "adapters are merged"
        assert torch.equal(before[table], after[table]) == same
        query = "bert.encoder.layer.0.attention.self.query.weight"
        assert not torch.equal(before[query], after[query])
        assert raison.load(out).classes == ("a", "b", "c")


def three_classes() -> Dataset:
    rows = tuple(replace(row, label=number % 3) for number, row in enumerate(decided(24, 2).rows))
    return replace(decided(24, 2), rows=rows, labels=("a", "b", "c"))


def test_a_base_gives_its_lowest_layers(tmp_path: Path) -> None:
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    cut, _ = fresh_classifier(tmp_path / "base", ("a", "b", "c"), layers=1)
    assert model.config.num_hidden_layers > cut.config.num_hidden_layers == len(cut.bert.encoder.layer) == 1
    for name, value in cut.bert.encoder.layer[0].state_dict().items():
        assert torch.equal(value, model.bert.encoder.layer[0].state_dict()[name]), name
    settings = ScratchSettings(base=str(tmp_path / "base"), layers=9, epochs=1, progress=False)
    with pytest.raises(LoadError, match="layers, not 9: give fewer"):
        train_scratch(three_classes(), three_classes(), tmp_path / "out", settings)


def test_the_encoder_of_a_t5_is_a_base(tmp_path: Path) -> None:
    _, tokenizer = TINY["t5"]()
    config = T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, num_heads=2, d_ff=32, num_layers=2, decoder_start_token_id=0
    )
    whole = T5ForConditionalGeneration(config).eval()
    whole.save_pretrained(tmp_path / "t5")
    tokenizer.save_pretrained(tmp_path / "t5")
    model = T5EncoderForSequenceClassification.from_pretrained(tmp_path / "t5", num_labels=2)
    ids = tokenizer(["a quiet film about the sea"], return_tensors="pt").input_ids
    with torch.no_grad():
        torch.testing.assert_close(model.base_model(ids)[0], whole.get_encoder()(ids)[0])
    settings = ScratchSettings(
        base=str(tmp_path / "t5"), architecture="t5_encoder", epochs=1, batch_size=8, progress=False
    )
    train_scratch(decided(24, 0), decided(16, 1), tmp_path / "out", settings)
    loaded = raison.load(tmp_path / "out")
    assert type(loaded.core) is T5EncoderForSequenceClassification
    assert loaded.classes == ("bad", "good")


def test_a_t5_encoder_takes_the_mean_of_what_is_no_padding() -> None:
    model, tokenizer = TINY["t5_encoder"]()
    inputs = tokenizer(["the sea", "I love this so much, and nobody did"], return_tensors="pt", padding=True)
    assert inputs.attention_mask.sum(1).unique().numel() == 2
    with torch.no_grad():
        states = model.base_model(**inputs)[0]
        rows = [states[row, : inputs.attention_mask[row].sum()].mean(0) for row in range(2)]
        expected = torch.stack(rows) @ model.classifier.weight.T + model.classifier.bias
        torch.testing.assert_close(model(**inputs).logits, expected)
        labels = torch.tensor([0, 2])
        loss = -expected.log_softmax(-1)[torch.arange(2), labels].mean()
        torch.testing.assert_close(model(**inputs, labels=labels).loss, loss)


def test_a_study_makes_its_model_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = counted(monkeypatch)
    folder = run("study.toml", "out", progress=False)
    assert len(trained) == 1, "also for estimate, run and header"
    said = json.loads((folder / "study.json").read_text())["models"]["small"]
    model = load_named_model(read("study.toml").spec.grid.models["small"])
    assert said["name"] == model.name == "small t5"
    assert said["parameters"] == sum(p.numel() for p in model.core.parameters())
    assert said["parameters"] - said["parameters_without_words"] == model.embedding_table.weight.numel()
    assert 0 <= said["accuracy"]["held_out"] <= 1
    assert json.loads((folder / "small--lines" / "run.json").read_text())["model"] == "small t5"
    (place / "elsewhere").mkdir()
    for name in ("lines.tsv", "study.toml"):
        (place / "elsewhere" / name).write_bytes((place / name).read_bytes())
    load_named_model(read("elsewhere/study.toml").spec.grid.models["small"])
    assert len(trained) == 1, "a file counts by what it holds"
    (place / "study.toml").write_text(STUDY.replace("epochs = 1", "epochs = 2"))
    load_named_model(read("study.toml").spec.grid.models["small"])
    assert len(trained) == 2


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of trainings from now on."""
    folders: list[Path] = []

    def train(train: Dataset, held_out: Dataset, out: Path, settings: ScratchSettings) -> object:
        folders.append(out)
        return train_scratch(train, held_out, out, settings)

    monkeypatch.setattr(made, "train_scratch", train)
    return folders


def test_the_second_that_wants_a_model_waits(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = counted(monkeypatch)
    entry = read("study.toml").spec.grid.models["small"]
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(made.made_folder(entry))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(trained) == 1
    assert found[0] == found[1]
    assert (found[0] / "card.json").is_file()


def test_a_training_that_fails_leaves_no_model(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = read("study.toml").spec.grid.models["small"]

    def fails(*_args: object) -> object:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(made, "train_scratch", fails)
        with pytest.raises(Killed):
            made.made_folder(entry)
    assert (made.made_folder(entry) / "card.json").is_file()


def test_too_few_texts_are_refused(place: Path) -> None:
    entry = read("study.toml").spec.grid.models["small"]
    few = replace(entry, made=replace(entry.made, train=replace(entry.made.train, limit=10)))
    with pytest.raises(DataError, match="10 rows, too few to hold some out"):
        made.made_folder(few)
    held_out = replace(few.made, held_out=replace(entry.made.train, limit=5))
    assert (made.made_folder(replace(few, made=held_out)) / "card.json").is_file()


MISTAKES: list[tuple[str, str, str]] = [
    ("width = 16", "widht = 16", "[models.small.made]: unknown key 'widht'. Did you mean 'width'?"),
    ('"t5_encoder"', '"t5_decoder"', "[models.small.made]: unknown architecture 't5_decoder'. Did you mean"),
    ('"t5_encoder"', '"bert"\nbase = "minilm"', "base decides the architecture, unless it is one of t5_encoder,"),
    ('architecture = "t5_encoder"', 'base = "minilm2"', "unknown base model 'minilm2'. Did you mean 'minilm'?"),
    ('architecture = "t5_encoder"', "", "give architecture (bert, gpt2, roberta, t5_encoder), base, or both."),
    ("heads = 2", "heads = 3", "width 16 cannot be shared by 3 heads"),
    ("epochs = 1", "epochs = 0", "epochs is 0; give a whole number of at least 1."),
    ("epochs = 1", "rank = 8", "rank applies to adapters in an unchanged base"),
    ("epochs = 1", "masked = 1.5", "masked is 1.5; give a number from 0 to 1."),
    ("vocabulary = 330", "vocabulary = 100", "vocabulary is 100; give a whole number of at least 320."),
    ("train = {", "train = { limt = 5,", "[models.small.made.train]: unknown key 'limt'. Did you mean 'limit'?"),
    ('train = { source = "lines.tsv", known_features = {} }', "", "train is missing; give a table."),
    ('name = "small t5"', 'name = "small t5"\nprompt = "sst2"', "a trained model is a classifier, and a prompt needs"),
]


@pytest.mark.parametrize(("before", "after", "told"), MISTAKES)
def test_mistakes_in_the_table_are_told(place: Path, before: str, after: str, told: str) -> None:
    assert before in STUDY
    (place / "study.toml").write_text(STUDY.replace(before, after, 1))
    with pytest.raises(StudyError) as caught:
        read("study.toml")
    assert any(told in line for line in caught.value.mistakes), caught.value.mistakes
    assert len(caught.value.mistakes) == 1


def test_settings_that_cannot_be_are_refused_before_anything(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be built: give architecture"):
        train_scratch(decided(24, 0), decided(8, 1), tmp_path / "out", ScratchSettings())
    assert not (tmp_path / "out").exists()


def test_the_command_line_makes_a_small_model(place: Path) -> None:
    asked = ["scratch", "--train", "lines.tsv", "--dev", "lines.tsv", "--out", "out", "--labels", "no,yes"]
    asked += ["--architecture", "t5_encoder", "--layers", "1", "--width", "16", "--heads", "2", "--epochs", "1"]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0, found.output
    assert "held_out accuracy" in found.output
    assert raison.load("out").classes == ("no", "yes")
