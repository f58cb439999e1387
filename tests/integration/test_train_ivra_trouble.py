"""What cannot be trained or read is one clear line: settings, models, data, folders of explainers."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, BertConfig

import raison
from raison.core.errors import InputError, LoadError, RaisonError, UnknownNameError, UnsupportedError
from raison.core.targets.answer import Answer
from raison.data import Dataset, Row
from raison.models.derived.attention_explainer import Design
from raison.models.derived.trained_attention import find
from raison.models.stack.eval_mode import quiet
from raison.training.recipes.ivra import fine_tune, train_ivra
from raison.training.settings.ivra import FineTuneSettings, IvraSettings
from tests.attention_explainers import span_adapter, untrained_attention
from tests.explainers import edit, saved_encoder
from tests.integration.test_bad_input import run
from tests.taught import DATA, TEXTS
from tests.tiny import HEADS, HIDDEN, INNER, POSITIONS, TINY, build_language_model
from tests.tokenizers import TOKENIZERS

QUICK = IvraSettings(criteria=("comp",), epochs=1, batch_size=4, texts=4, validation=4, progress=False)


# Settings


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"criteria": ()}, InputError, "give at least one of sim, comp"),
        ({"criteria": ("simm",)}, UnknownNameError, "Did you mean 'sim'"),
        ({"criteria": ("comprehensivness",)}, UnknownNameError, "Did you mean 'comprehensiveness'"),
        ({"criteria": ("comp", "comprehensiveness(margin=0.5)")}, InputError, "comprehensiveness is given twice"),
        ({"criteria": ("comp(margins=1)",)}, UnknownNameError, "Did you mean 'margin'"),
        ({"weights": (1.0, 2.0)}, InputError, "2 weights for 1 criteria"),
        ({"weights": (0.0,)}, InputError, "above 0"),
        ({"weights": (float("nan"),)}, InputError, "each entry a number"),
        ({"criteria": ("cons",), "batch_size": 1}, InputError, "no pair of texts .* --batch-size 2"),
        ({"criteria": ("comp", "clust"), "batch_size": 1}, InputError, "no pair of texts"),
        ({"criteria": ("comp(shares=())",)}, InputError, "shares of the criterion comprehensiveness cannot be"),
        ({"criteria": ("suff(shares=(20.0, 50.0))",)}, InputError, "give shares above 0, 1 at most, such as 0.1"),
        ({"criteria": ("suff_mae(shares=0.1)",)}, InputError, "shares of the criterion .* cannot be 0.1"),
        ({"criteria": ("cons(smoothing=0)",)}, InputError, "smoothing of the criterion consistency cannot be 0"),
        ({"criteria": ("sim(smoothing=1.5)",)}, InputError, "smoothing of .* cannot be 1.5"),
        (
            {"criteria": ("sim(smoothing=0)",), "norm": "sparsemax"},
            InputError,
            "sparsemax gives zeros: give smoothing",
        ),
        ({"criteria": ("comp(margin='x')",)}, InputError, "margin of .* cannot be 'x'"),
        ({"criteria": ("suff(margin=-1)",)}, InputError, "margin of .* cannot be -1"),
        ({"criteria": ("suff_kl(detached='no')",)}, InputError, "detached of .* cannot be 'no'"),
        ({"seed": -1}, InputError, "seed cannot be -1"),
        ({"seed": 2**62}, InputError, "seed cannot be 46116"),
        ({"student_share": 0.0}, InputError, "student_share cannot be 0.0"),
        ({"epochs": 0}, InputError, "epochs cannot be 0"),
        ({"learning_rate": float("inf")}, InputError, "learning_rate cannot be inf"),
        ({"decay": -1.0}, InputError, "decay cannot be -1.0"),
        ({"selection": ("features",)}, UnknownNameError, "Did you mean 'feature'"),
    ],
)
def test_settings(settings: dict[str, Any], kind: type[RaisonError], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        replace(QUICK, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("form", "ivr", "Did you mean 'ivra'"),
        ("norm", "sparsemx", "Did you mean 'sparsemax'"),
        ("over", "token", "Did you mean 'tokens'"),
    ],
)
def test_names_that_are_none(name: str, value: str, said: str) -> None:
    # Type checks of the tests would refuse them in the constructor: the check itself is called here.
    design = Design()
    object.__setattr__(design, name, value)
    with pytest.raises(UnknownNameError, match=said):
        design.check()


@pytest.mark.parametrize("settings", [{"norm": "sparsemax"}, {"form": "smat"}, {"form": "smat", "norm": "sparsemax"}])
def test_sparsemax_without_its_library(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "entmax", None)
    with pytest.raises(LoadError, match=r"needs the package entmax: pip install 'raison\[sparse\]'"):
        replace(QUICK, **settings)
    assert replace(QUICK, norm="softmax").norm == "softmax"


# Models and data


def refused(model: object, data: Dataset, out: Path, **settings: Any) -> str:
    with pytest.raises(RaisonError) as caught:
        train_ivra(model, data, out, replace(QUICK, **settings))
    assert not out.exists()
    return str(caught.value)


def test_models_that_cannot_be_trained(tmp_path: Path) -> None:
    out = tmp_path / "out"
    generator = raison.load(*build_language_model("gpt2"))
    assert "cannot train" in refused(generator, DATA, out)
    model, tokenizer = TINY["bert"]()
    model.config.problem_type = "multi_label_classification"
    assert "it decides on each label separately" in refused(raison.load(model, tokenizer), DATA, out)
    assert "its attention cannot be read" in refused(raison.load(*TINY["t5"]()), DATA, out)


def test_a_model_behind_adapters(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    model, tokenizer = TINY["bert"]()
    with quiet():
        wrapped = peft.get_peft_model(model, peft.LoraConfig(task_type="SEQ_CLS", target_modules=["query"], r=2))
    assert "merge_and_unload" in refused(raison.load(wrapped, tokenizer), DATA, tmp_path / "out")


def question(context: str, said: str) -> Row:
    start = context.index(said)
    return Row(("What was it?", context), None, 0, (), (Answer(start, start + len(said), said),))


def test_data_that_does_not_fit(tmp_path: Path) -> None:
    out, classifier = tmp_path / "out", raison.load(*TINY["bert"]())
    answering = span_adapter(tmp_path / "model")
    near = [question("It was a quiet film.", "a quiet film") for _ in range(7)]
    far = question("the sea " * 90 + "and a storm", "a storm")
    assert "is outside what the model reads" in refused(answering, Dataset("far", (*near, far)), out)
    without = replace(near[0], answers=())
    assert "no answer, and every row needs one" in refused(answering, Dataset("some", (*near, without)), out)
    assert "needs pairs (question, context)" in refused(answering, DATA, out)
    assert "no label, and every row needs one" in refused(classifier, Dataset("answers", tuple(near * 2)), out)
    few = refused(classifier, DATA, out, criteria=("comp", "cons"), batch_size=2)
    assert "consistency has no score on 4 held-out texts in batches of 2: it compares at least 3" in few
    assert "8 are needed" in refused(classifier, replace(DATA, rows=DATA.rows[:5]), out)
    assert "clustering needs classes" in refused(answering, Dataset("near", tuple(near * 2)), out, criteria=("clust",))


def test_a_base_without_names_of_labels(tmp_path: Path) -> None:
    numbered = replace(DATA, rows=tuple(replace(row, label=n % 2) for n, row in enumerate(DATA.rows)))
    plain = FineTuneSettings(epochs=1, texts=4, validation=4, progress=False)
    with pytest.raises(InputError, match="are numbers: name them in order with --labels"):
        fine_tune(saved_encoder(tmp_path / "base"), numbered, tmp_path / "out", plain)


def test_a_student_that_knows_the_task(tmp_path: Path) -> None:
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path / "trained")
    tokenizer.save_pretrained(tmp_path / "trained")
    said = refused(
        raison.load(model, tokenizer), DATA, tmp_path / "out", criteria=("sim",), student=str(tmp_path / "trained")
    )
    assert "a student must not know the task" in said


# Explainers


def explained(model: object, folder: Path, method: str = "ivra") -> raison.Explanation:
    return raison.explain(model, TEXTS[0], f"{method}(checkpoint={str(folder)!r})")


def test_an_explainer_of_another_model(tmp_path: Path) -> None:
    model = raison.load(*TINY["bert"]())
    untrained_attention(model, tmp_path, Design())
    assert sum(explained(model, tmp_path).scores) == pytest.approx(1, abs=1e-5)
    # Also where it was read a moment ago by the other name.
    with pytest.raises(UnsupportedError, match="of the form ivra: use the method ivra"):
        explained(model, tmp_path, "smat")
    with pytest.raises(UnsupportedError, match="trained with another tokenizer"):
        explained(raison.load(*TINY["roberta"]()), tmp_path)
    with torch.no_grad():
        model.core.classifier.bias += torch.tensor([3.0, 0.0, 0.0])
    with pytest.raises(UnsupportedError, match="probabilities differ"):
        explained(model, tmp_path)


@pytest.mark.parametrize(("layers", "heads"), [(2, HEADS), (3, 2)])
def test_an_explainer_of_another_shape(layers: int, heads: int, tmp_path: Path) -> None:
    model = raison.load(*TINY["bert"]())
    untrained_attention(model, tmp_path, Design())
    tokenizer = TOKENIZERS["bert_uncased"]()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        num_attention_heads=heads,
        num_hidden_layers=layers,
        intermediate_size=INNER,
        max_position_embeddings=POSITIONS,
        id2label=model.core.config.id2label,
        label2id=model.core.config.label2id,
    )
    with torch.random.fork_rng(devices=[]):
        other = AutoModelForSequenceClassification.from_config(config)
    said = f"made for 3 layers of {HEADS} heads with .* the model has {layers} layers of {heads} heads"
    with pytest.raises(UnsupportedError, match=said):
        explained(raison.load(other.eval(), tokenizer), tmp_path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def reshape(path: Path) -> None:
    save_file({name: value[:1].contiguous() for name, value in load_file(path).items()}, path)


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        ("explainer.json", Path.unlink, "no trained attention explainer in .*raison train ivra"),
        ("explainer.json", cut, "cannot read .*explainer.json"),
        ("explainer.safetensors", Path.unlink, "cannot read the explainer's coefficients"),
        ("explainer.safetensors", cut, "cannot read the explainer's coefficients"),
        ("explainer.safetensors", reshape, "cannot read the explainer's coefficients"),
    ],
)
def test_broken_files(name: str, spoil: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    model = raison.load(*TINY["bert"]())
    untrained_attention(model, tmp_path, Design())
    spoil(tmp_path / name)
    with pytest.raises(LoadError, match=said) as caught:
        find(model, str(tmp_path), "ivra")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda card: card.update(schema=99), "newer version of raison"),
        (lambda card: card.pop("design"), "cannot read"),
        (lambda card: card["design"].update(norms="softmax"), "cannot read"),
        (lambda card: card.update(shape=[3]), "cannot read"),
    ],
)
def test_broken_cards(change: Callable[[dict[str, Any]], object], said: str, tmp_path: Path) -> None:
    model = raison.load(*TINY["bert"]())
    untrained_attention(model, tmp_path, Design())
    edit(tmp_path, change)
    with pytest.raises(LoadError, match=said):
        find(model, str(tmp_path), "ivra")


def test_a_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    model = raison.load(*TINY["bert"]())
    for design in (Design(), Design("smat", "sparsemax", (), "tokens"), Design(initial=(1.0, 2.0))):
        card = untrained_attention(model, tmp_path, design)
        assert find(model, str(tmp_path), design.form).card == card
        assert json.loads((tmp_path / "explainer.json").read_text())["design"]["norm"] == design.norm


# The command line


def test_the_command_says_what_is_wrong_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "data.tsv").write_text("text\tlabel\n" + "".join(f"{row.text}\t{row.label}\n" for row in DATA.rows))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    usual = "train ivra --data data.tsv --model model --out out --epochs 1 --batch-size 4 --texts 4".split()
    for arguments, said in (
        ("--criteria compp", "Did you mean 'comp'"),
        ("--criteria ,", "give at least one"),
        ("--criteria comp,comp", "is given twice"),
        ("--criteria cons --batch-size 1", "no pair of texts"),
        ("--criteria comp --norm softmaxx", "Did you mean 'softmax'"),
        ("--criteria comp --form smatt", "Did you mean 'smat'"),
        ("--criteria comp --selection heads", "Did you mean 'head'"),
        ("--criteria comp --over unit", "Did you mean 'units'"),
        ("--criteria comp --weights one", "cannot read --weights"),
        ("--criteria comp --weights 1,2", "2 weights for 1 criteria"),
        ("--criteria comp --data missing.tsv", "missing.tsv"),
        ("--criteria comp --texts 100", "are needed"),
        ("--criteria comp --lr 0", "learning_rate cannot be 0"),
    ):
        code, out, err = run(monkeypatch, capsys, *usual, *arguments.split())
        assert (code, out) == (2, ""), arguments
        assert err.splitlines()[-1].startswith("raison: "), arguments
        assert said in err.splitlines()[-1], (arguments, err)
        assert not (tmp_path / "out").exists(), arguments
