"""Bad input is one clear line that says what, why and the way out; a typed exception in Python."""

import errno
import os
import sys
from pathlib import Path

import jaxtyping
import pytest
import torch
from transformers import BertModel

import raison
from raison.core import errors
from raison.core.method import Method
from raison.models.adapters.classifier import Classifier
from tests.tiny import TINY

TEXT = "the film is not a quiet pleasure"


@pytest.fixture
def model() -> Classifier:
    return raison.load(*TINY["bert"]())


@pytest.mark.parametrize("text", ["", "   ", "\n\t", ("fine", " ")])
def test_blank_text(model: Classifier, text: object) -> None:
    with pytest.raises(errors.InputError, match="empty or blank"):
        raison.explain(model, text)


@pytest.mark.parametrize("text", [3, None, ("a", "b", "c", "d"), ("a", 1)], ids=str)
def test_what_is_no_text_is_refused_in_words(model: Classifier, text: object) -> None:
    """The checks of types that tests make are off here: they would refuse it first."""
    assert jaxtyping.config.jaxtyping_disable
    with pytest.raises(errors.InputError, match="a text is a string, or a pair"):
        raison.explain(model, [text])


WRONG_SETTINGS = {
    "kernel_shap(samples='many')": "samples",
    "integrated_gradients(steps=0.5)": "steps",
    "integrated_gradients(baseline='zeros')": "Did you mean 'zero'",
    "lime(alpha='big')": "alpha",
    "attention_rollout(residual='no')": "residual",
    "attention_flow(residual='no')": "residual",
}


@pytest.mark.parametrize("method", WRONG_SETTINGS)
def test_settings_of_a_wrong_type_are_refused_in_words(model: Classifier, method: str) -> None:
    """The checks of types that tests make are off here: they would refuse them first."""
    assert jaxtyping.config.jaxtyping_disable
    with pytest.raises(errors.RaisonError, match=WRONG_SETTINGS[method]):
        raison.explain(model, "fine", method)


def test_a_model_that_was_not_loaded_or_a_single_text(model: Classifier, tmp_path: Path) -> None:
    for wrong in (model.model, "demo/sst2"):
        for options in ({}, {"target": "each"}, {"method": "rpi", "select": "comprehensiveness"}):
            with pytest.raises(errors.InputError, match="raison.load"):
                raison.explain(wrong, TEXT, **options)
    with pytest.raises(errors.InputError, match="list of at least one"):
        raison.compare(model, TEXT)
    for bad in ({"target": "positve"}, {"removal": "masks"}, {"of": "logits"}):
        with pytest.raises(errors.InputError, match="Did you mean"):
            raison.compare(model, [TEXT], ["occlusion"], out=tmp_path / "out", **bad)
    for bad, message in (({"target": []}, "0 targets for 1 texts"), ({"seed": 1.5}, "whole number")):
        with pytest.raises(errors.InputError, match=message):
            raison.compare(model, [TEXT], ["occlusion"], out=tmp_path / "out", **bad)
    assert not (tmp_path / "out").exists(), "a refused run must not occupy its folder"


NO_METHOD = [42, ["occlusion"], raison.metrics.Comprehensiveness(), raison.metrics.Comprehensiveness, Method]


@pytest.mark.parametrize("method", NO_METHOD, ids=str)
def test_what_is_no_method_is_refused_in_words(model: Classifier, method: object) -> None:
    with pytest.raises(errors.InputError, match="the method"):
        raison.explain(model, TEXT, method)
    with pytest.raises(errors.InputError, match="the method"):
        raison.compare(model, [TEXT], [method], progress=False)


@pytest.mark.parametrize("metric", [3.5, raison.methods.Occlusion()], ids=str)
def test_what_is_no_metric_is_refused_in_words(model: Classifier, metric: object) -> None:
    with pytest.raises(errors.InputError, match="the metric is"):
        raison.explain(model, TEXT, "occlusion", select=metric)
    with pytest.raises(errors.InputError, match="the metric is"):
        raison.compare(model, [TEXT], ["occlusion"], [metric], progress=False)


def test_a_model_in_place_of_a_text_is_told_the_order(model: Classifier) -> None:
    for arguments in ((TEXT, model), (model, model), ([TEXT], [model])):
        with pytest.raises(errors.InputError, match="the model comes first"):
            raison.explain(*arguments)


def test_a_class_of_a_method_is_as_good_as_its_name(model: Classifier) -> None:
    assert (
        raison.explain(model, TEXT, raison.methods.Occlusion).scores == raison.explain(model, TEXT, "occlusion").scores
    )


def test_empty_list(model: Classifier) -> None:
    assert raison.explain(model, []) == []


def test_too_long_names_the_limit_and_truncate_records_it(model: Classifier) -> None:
    long = "a " * 300
    with pytest.raises(errors.TextTooLongError, match="302 tokens .* at most 128: .*truncate"):
        raison.explain(model, long, "occlusion", unit="word")
    explanation = raison.explain(model, long, "random", truncate=True)
    assert explanation.truncated == 302 - 128
    assert len(explanation.units) == 126
    assert raison.Explanation.from_json(explanation.to_json()).truncated == explanation.truncated


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"method": "integrated_gradient"},
            r"unknown method 'integrated_gradient'. Did you mean 'integrated_gradients'",
        ),
        ({"method": "kernel_shap(sample=8)"}, r"unknown setting of kernel_shap 'sample'. Did you mean 'samples'"),
        ({"method": "kernel_shap(8"}, "cannot read the method"),
        ({"unit": "words"}, "unknown unit 'words'. Did you mean 'word'"),
        ({"target": "positve"}, "unknown label 'positve'. Did you mean 'positive'"),
        ({"target": 3}, "class 3 does not exist: the model has 3 classes"),
        ({"target": ("positive", "positive")}, "both targets are the class"),
        ({"of": "logits"}, "Did you mean 'logit'"),
        ({"removal": "masks"}, "unknown removal 'masks'. Did you mean 'mask'"),
    ],
)
def test_unknown_names_come_with_the_nearest(model: Classifier, arguments: dict, message: str) -> None:
    with pytest.raises(errors.InputError, match=message):
        raison.explain(model, TEXT, **arguments)


def test_a_tokenizer_without_a_mask_token() -> None:
    model = raison.load(*TINY["gpt2"]())
    with pytest.raises(errors.UnsupportedError, match=r"no mask token. Use removal='(unk|pad)'"):
        raison.explain(model, TEXT, "occlusion", removal="mask")
    assert raison.explain(model, TEXT, "occlusion").removal in ("unk", "pad")


def test_a_model_without_a_classification_head(tmp_path: Path) -> None:
    model, tokenizer = TINY["bert"]()
    headless = BertModel(model.config)
    with pytest.raises(errors.LoadError, match="no trained classification head"):
        raison.load(headless, tokenizer)
    headless.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    before = torch.get_rng_state()
    with pytest.raises(errors.LoadError, match=r"lacks classifier.bias, classifier.weight.*raison train classifier"):
        raison.load(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_saved_model_loads_and_predicts_the_same(tmp_path: Path, model: Classifier) -> None:
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    again = raison.load(tmp_path, dtype="float32")
    assert raison.explain(again, TEXT).scores == pytest.approx(raison.explain(model, TEXT).scores, abs=1e-6)
    half = raison.load(tmp_path, dtype="bfloat16", device="cpu")
    assert half.core.dtype == torch.bfloat16


def test_loading_what_does_not_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(errors.RaisonError, match="Did you mean 'demo/sst2'"):
        raison.load("demo/sst")
    with pytest.raises(errors.LoadError, match="holds no model"):
        raison.load(tmp_path)
    with pytest.raises(errors.InputError, match="needs its tokenizer"):
        raison.load(TINY["bert"]()[0])
    with pytest.raises(errors.InputError, match="never moved"):
        raison.load(*TINY["bert"](), device="cpu")


def test_nan_names_the_text_and_the_layer(model: Classifier) -> None:
    with torch.no_grad():
        model.core.bert.encoder.layer[1].output.dense.weight[0, 0] = float("nan")
    with pytest.raises(errors.NonFiniteError, match=r"NaN or infinite logits for .*encoder.layer.1.output.dense"):
        raison.explain(model, TEXT)


def test_infinite_logits(model: Classifier) -> None:
    with torch.no_grad():
        model.core.classifier.bias[0] = float("inf")
    with pytest.raises(errors.NonFiniteError, match="classifier"):
        raison.explain(model, TEXT, "occlusion")


def test_out_of_memory_halves_the_budget_and_goes_on(model: Classifier) -> None:
    encoding = model.encode([TEXT])
    keeps = [torch.eye(encoding.unit_counts[0], dtype=torch.bool)]
    expected = model.masked_logits(encoding, keeps, "mask")[0]
    sizes: list[int] = []
    inner = model.core.forward

    def limited(*args: object, **kwargs: object) -> object:
        rows = len(kwargs["input_ids"])
        sizes.append(rows)
        if rows > 2:
            torch.empty(10**15)  # out of memory, on this device
        return inner(*args, **kwargs)

    model.core.forward = limited
    before = model.budget.tokens
    torch.testing.assert_close(model.masked_logits(encoding, keeps, "mask")[0], expected, atol=1e-5, rtol=1e-5)
    assert max(sizes) > 2
    assert model.budget.tokens < before


@pytest.mark.parametrize("rows", [0, 1], ids=["prediction", "perturbed texts"])
def test_a_text_that_does_not_fit_is_named_with_its_length(model: Classifier, rows: int) -> None:
    calls: list[int] = []
    inner = model.core.forward

    def limited(*args: object, **kwargs: object) -> object:
        calls.append(1)
        if len(calls) > rows:
            raise torch.OutOfMemoryError("too much")
        return inner(*args, **kwargs)

    model.core.forward = limited
    long = f"{TEXT} \x1b " * 6
    with pytest.raises(errors.OutOfMemoryError, match="not even one text fits into the device's memory") as caught:
        raison.explain(model, long, "occlusion")
    length = model.encode([long]).lengths[0]
    assert str(caught.value).endswith(f"({length} tokens).")
    assert f"The longest is '{TEXT[:10]}" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The command line in this process: exit code, standard output, standard error."""
    from raison.cli import main

    monkeypatch.setattr(sys, "argv", ["raison", *arguments])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main()
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.fixture
def folder(tmp_path: Path, model: Classifier) -> str:
    model.model.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def test_command_line_says_it_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    for arguments in (
        ("explain", " ", "--model", folder),
        ("explain", TEXT, "--model", folder, "--method", "oclusion"),
        ("explain", TEXT, "--model", folder, "--target", "good"),
        ("explain", "good " * 300, "--model", folder),
        ("compare", "--model", folder, "--data", "missing.tsv"),
    ):
        code, out, err = run(monkeypatch, capsys, *arguments)
        assert (code, out) == (2, "")
        assert err.startswith("raison: ")
        assert err.count("\n") == 1


def test_explain_prints_json_and_writes_a_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: str, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    code, out, err = run(monkeypatch, capsys, "explain", TEXT, "--model", folder, "--json", "--html", str(page))
    assert code == 0
    assert f"wrote the page to {page}" in err
    assert "".join(unit.text for unit in raison.Explanation.from_json(out).units) == TEXT.replace(" ", "")
    assert "quiet" in page.read_text(encoding="utf-8")


def test_broken_lines_are_named_and_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: str, tmp_path: Path
) -> None:
    data = tmp_path / "data.tsv"
    data.write_text(f"text\tlabel\n{TEXT}\t1\nbroken\n{'good ' * 300}\t0\n{TEXT} again\t1\n")
    arguments = ("compare", "--model", folder, "--data", str(data), "--methods", "occlusion", "--json")
    code, _, err = run(monkeypatch, capsys, *arguments)
    assert code == 2
    assert "3" in err
    assert "skip" in err
    code, out, err = run(monkeypatch, capsys, *arguments, "--skip-bad")
    assert code == 0
    assert '"texts": 2' in out
    assert "line 3" in err
    assert "at most 128" in err


def test_missing_column(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: str, tmp_path: Path
) -> None:
    data = tmp_path / "data.csv"
    data.write_text(f"review,label\n{TEXT},1\n")
    code, _, err = run(monkeypatch, capsys, "compare", "--model", folder, "--data", str(data), "--text-column", "revew")
    assert code == 2
    assert "Did you mean 'review'" in err


def test_no_space_left_keeps_what_was_written(
    monkeypatch: pytest.MonkeyPatch, model: Classifier, tmp_path: Path
) -> None:
    texts = [f"{TEXT} {word}" for word in ("good", "dull", "loud")] * 11
    real, records = os.write, tmp_path / "records.jsonl"

    def full(file: int, content: bytes) -> int:
        # From the first chunk's records on, which come after its explanations.
        if records.exists() and records.stat().st_size:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, content)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(errors.DataError, match="no space left"):
            raison.compare(model, texts, ["occlusion"], out=tmp_path, progress=False)
    assert len(records.read_text().splitlines()) == 16 * 2
    resumed = raison.compare(model, texts, ["occlusion"], out=tmp_path, progress=False)
    assert resumed.texts == len(texts)


def test_doctor_methods_metrics_and_estimate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: str, tmp_path: Path
) -> None:
    code, out, _ = run(monkeypatch, capsys, "doctor", folder)
    assert code == 0
    assert "methods that work: alti, attention_average, attention_flow, attention_last, attention_rollout" in " ".join(
        out.split()
    )
    assert "FAIL" not in out
    for command in ("methods", "metrics"):
        assert run(monkeypatch, capsys, command)[0] == 0
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{TEXT}\t{i % 2}\n" for i in range(4)))
    code, out, _ = run(monkeypatch, capsys, "estimate", "--model", folder, "--data", str(data), "--json")
    assert code == 0
    assert '"texts": 4' in out


@pytest.mark.parametrize("placing", [{"device_map": "cpu"}, {"device": "cpu"}, {"dtype": torch.float32}])
def test_placing_is_honoured(folder: str, model: Classifier, placing: dict) -> None:
    loaded = raison.load(folder, **placing)
    assert loaded.device.type == "cpu"
    expected = raison.explain(model, TEXT, "occlusion").scores
    assert raison.explain(loaded, TEXT, "occlusion").scores == pytest.approx(expected, abs=1e-6)


def test_placing_that_excludes_itself(folder: str) -> None:
    with pytest.raises(errors.InputError, match="exclude each other"):
        raison.load(folder, device="cpu", device_map="cpu")
    with pytest.raises(errors.InputError, match="unknown dtype 'float31'"):
        raison.load(folder, dtype="float31")


@pytest.mark.parametrize("command", ["compare", "audit", "estimate"])
def test_what_was_taken_from_a_file_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: str, tmp_path: Path, command: str
) -> None:
    data = tmp_path / "data.csv"
    data.write_text(f"review;stars\n{TEXT};5\n{TEXT}, again;1\n")
    arguments = (command, "--model", folder, "--data", str(data), "--methods", "occlusion")
    more = ("--estimate", "--no-plots") if command == "audit" else ()
    code, _, err = run(monkeypatch, capsys, *arguments, *more)
    assert code == 0
    assert f"raison: {data}: text: 'review'; label: 'stars'; columns separated by ';'\n" in err
    data.write_text(f"{TEXT}, a,1\n{TEXT},0\n")
    code, out, err = run(monkeypatch, capsys, *arguments, *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot be split into columns unambiguously" in err
    assert run(monkeypatch, capsys, *arguments, *more, "--delimiter", "none")[0] == 0


def test_each_mistake_of_a_study_has_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.toml"
    path.write_text('schema = 1\ntitle = "t"\nmethods = ["limee"]\nmetrics = ["ginni"]\n', encoding="utf-8")
    code, _, err = run(monkeypatch, capsys, "study", "check", str(path))
    first, *mistakes = err.splitlines()
    assert code == 2
    assert first.startswith(f"raison: {path} cannot be run because of {len(mistakes)} mistakes:")
    assert any("Did you mean 'lime'" in line for line in mistakes)
    assert any("Did you mean 'gini'" in line for line in mistakes)
    assert "\\x0a" not in err
