"""A model's digests: the same for the same files wherever they are read, other ones for whatever computes otherwise."""

import importlib.util
import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import DataError
from raison.data import Dataset, Row
from raison.data.digest import dataset_digest
from raison.explaining.settings import Settings
from raison.jobs.identity import CONFIGURATION, TOKENIZER, WEIGHTS, check, differing
from raison.judging.plan import Plan, header_of
from raison.models.adapters.classifier import Classifier
from raison.models.derived.identity import identity_of
from tests.tiny import TINY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def read(folder: Path) -> Classifier:
    loaded = raison.load(folder)
    assert isinstance(loaded, Classifier)
    return loaded


def changes(folder: Path, model: Classifier) -> list[str]:
    return differing(identity_of(read(folder)), identity_of(model))


@pytest.mark.parametrize("family", list(TINY))
def test_the_same_model_has_the_same_digests(family: str) -> None:
    one, other = (raison.load(*TINY[family]()) for _ in range(2))
    before = identity_of(one)
    one.encode(["a quiet film, cut and padded", "good"], "word")
    assert identity_of(one) == identity_of(other) == before


def test_a_copy_read_by_another_process_with_other_threads(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    script = (
        "import json, torch, raison; torch.set_num_threads(2); from raison.models.derived.identity import identity_of; "
        f"print(json.dumps(identity_of(raison.load({str(tmp_path / 'copy')!r}))))"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert json.loads(told.splitlines()[-1]) == identity_of(read(folder))


def test_one_value_or_two_rows_that_changed_places(folder: Path) -> None:
    model = read(folder)
    table = model.embedding_table.weight
    with torch.no_grad():
        table[3, 5] += 1e-6
        assert changes(folder, model) == [WEIGHTS]
        table[3, 5] = read(folder).embedding_table.weight[3, 5]
        assert changes(folder, model) == []
        table[[3, 4]] = table[[4, 3]]
    assert changes(folder, model) == [WEIGHTS]


def test_two_rows_of_a_large_table(folder: Path) -> None:
    model = read(folder)
    model.core.large = torch.nn.Embedding(3000, 65)
    before = identity_of(model)
    with torch.no_grad():
        model.core.large.weight[[1000, 2001]] = model.core.large.weight[[2001, 1000]]
    assert differing(before, identity_of(model)) == [WEIGHTS]


def dynamic(weight: torch.Tensor, bias: torch.Tensor) -> torch.nn.Module:
    """torch's own layer of eight bits, whose state holds a tuple of both, and a dtype."""
    if importlib.util.find_spec("torch.ao.quantization") is None:
        pytest.skip("this torch has no dynamic quantisation any more")
    layer = torch.nn.Linear(*reversed(weight.shape))
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (DeprecationWarning, UserWarning, FutureWarning))
        from torch.ao.quantization import quantize_dynamic

        return quantize_dynamic(torch.nn.Sequential(layer), {torch.nn.Linear}, dtype=torch.qint8)


def test_layers_that_torch_quantised(folder: Path) -> None:
    model = read(folder)
    weight, bias = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)), torch.zeros(6)

    def told(weight: torch.Tensor, bias: torch.Tensor) -> dict[str, str]:
        model.core.more = dynamic(weight, bias)
        return identity_of(model)

    before = told(weight, bias)
    assert told(weight, bias) == before
    # The same whole numbers with another scale, rows in another order, another bias.
    for other in ((2 * weight, bias), (weight.flip(0), bias), (weight, bias + 1)):
        assert differing(before, told(*other)) == [WEIGHTS]


def test_another_type_of_the_weights(folder: Path) -> None:
    loaded = raison.load(folder, dtype="bfloat16")
    assert WEIGHTS in changes(folder, loaded)


def test_two_words_of_the_vocabulary_that_changed_places(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "other")
    path = tmp_path / "other" / "tokenizer.json"
    held = json.loads(path.read_text())
    words = held["model"]["vocab"]
    one, other = list(words)[7:9]
    words[one], words[other] = words[other], words[one]
    path.write_text(json.dumps(held))
    assert changes(folder, read(tmp_path / "other")) == [TOKENIZER]


def test_another_configuration(folder: Path) -> None:
    model = read(folder)
    model.core.config.layer_norm_eps = 1e-3
    assert changes(folder, model) == [CONFIGURATION]


def test_data_are_texts_labels_and_rationales() -> None:
    def data(text: str = "a", label: str = "x", marks: tuple = ()) -> str:
        return dataset_digest(Dataset("d", (Row(text, label, 1, marks),)))

    assert data() == data()
    assert len({data(), data("b"), data(label="y"), data(marks=(((0, 1),),))}) == 4


def test_what_was_never_noted_is_refused_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="older version of raison.*another folder for --out"):
        check(tmp_path, "run", {"model": "x"}, {WEIGHTS: "1"})


def test_digests_of_texts_are_as_they_were(folder: Path) -> None:
    """Rows are taken over from committed runs by it."""
    import hashlib

    from raison.core.inputs.rationale import Span

    model, texts = read(folder), ("a", ("b", "ü"), "c")
    for marks in ((), (((Span(0, 1),),), (), ((Span(2, 3), Span(4, 5)),))):
        plain = [[[(s.start, s.end, s.segment) for s in one] for one in of_text] for of_text in marks]
        told = json.dumps([list(texts), plain], ensure_ascii=False)
        plan = Plan(model, texts, marks, (), (), Settings(of="probability"), "data")
        assert header_of(plan).raw["texts_sha256"] == hashlib.sha256(told.encode()).hexdigest()


def test_the_callers_random_numbers_are_the_same_after_a_function_was_identified() -> None:
    def drawn(texts: list[str]) -> np.ndarray:
        yes = torch.rand(len(texts)).numpy()
        return np.stack([1 - yes, yes], 1)

    model = raison.load(drawn, classes=["no", "yes"], name="f")
    before = torch.get_rng_state()
    found = identity_of(model)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(1)
    assert identity_of(model) == found
