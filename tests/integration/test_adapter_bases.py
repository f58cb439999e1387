"""An adapter is read with the base of its training, wherever it is read from, and with no other."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from raison.core.errors import LoadError
from raison.data import Dataset, Row
from raison.models.loading.ready_made import zoo
from raison.training.recipes.classifier import ClassifierSettings, Splits, train_classifier
from tests.tiny import build

QUICK = ClassifierSettings(epochs=1, batch_size=8, rank=4, labels=("bad", "good"), seed=3, progress=False)


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Trains an adapter in the folder `out` on a base of a family, which is called as given."""
    monkeypatch.chdir(tmp_path)

    def train(family: str, base: str) -> Path:
        model, tokenizer = build(family, QUICK.labels)
        model.save_pretrained("base")
        tokenizer.save_pretrained("base")
        train, test = (
            Dataset(name, tuple(Row(f"{name} film {n}", n % 2, n) for n in range(16))) for name in ("learn", "judge")
        )
        train_classifier(base, Splits(train, test), Path("out"), QUICK)
        return tmp_path / "out"

    return train


def edit(out: Path, **changed: str) -> None:
    card = json.loads((out / zoo.CARD).read_text())
    (out / zoo.CARD).write_text(json.dumps(card | changed))


def test_another_base_is_refused(trained: Callable[[str, str], Path]) -> None:
    out = trained("bert", "base")
    zoo.load_adapter(out)
    weights = load_file("base/model.safetensors")
    weights["bert.pooler.dense.bias"] += 1
    save_file(weights, "base/model.safetensors", metadata={"format": "pt"})
    with pytest.raises(LoadError, match=r"its base base has other weights than in its training \(sha256 .* instead of"):
        zoo.load_adapter(out)
    edit(out, base_sha256="")
    zoo.load_adapter(out)


def test_a_relative_base_is_found_from_elsewhere(
    trained: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = trained("bert", "base")
    (tmp_path / "elsewhere" / "base").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(LoadError, match="its base base has other weights"):
        zoo.load_adapter(out)
    (tmp_path / "elsewhere" / "base").rmdir()
    with pytest.raises(LoadError, match=r"its base 'base' is neither a folder \(looked for 'base' and '.*out/base'\)"):
        zoo.load_adapter(out)
    edit(out, base="../base")
    zoo.load_adapter(out)


def test_a_head_that_the_adapter_only_adds_to_is_that_of_its_training(trained: Callable[[str, str], Path]) -> None:
    """DeBERTa's head has a pooler, of which an adapter has low-rank matrices alone."""
    out = trained("deberta_v2", "base")
    fresh, _ = zoo.fresh_classifier(Path("base"), QUICK.labels, QUICK.seed)
    found = zoo.load_adapter(out)[0].pooler.dense.weight
    added = found - fresh.pooler.dense.weight
    assert torch.linalg.matrix_rank(added, atol=1e-5) <= QUICK.rank


def test_a_head_of_two_layers_is_trained_whole(trained: Callable[[str, str], Path]) -> None:
    """DistilBERT's first layer of the head ends with the name of the second, which adapters save whole."""
    out = trained("distilbert", "base")
    fresh, _ = zoo.fresh_classifier(Path("base"), QUICK.labels, QUICK.seed)
    found, _ = zoo.load_adapter(out)
    for part in ("pre_classifier", "classifier"):
        assert not torch.equal(getattr(found, part).weight, getattr(fresh, part).weight)
