"""What audits recommended: kept for this very model, and believed only as far as input from outside can be."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import raison
from raison.combining import advice
from raison.combining.advice import advised, harmless, kept, remember
from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.methods import CATALOGUE
from raison.models.derived import identity
from tests.tiny import TINY
from tests.toys import Linear

TEXT = "the plot is thin but the acting is good"


@pytest.fixture
def model() -> LanguageModel:
    return raison.load(*TINY["bert"]())


def test_a_recommendation_is_taken_where_the_budget_allows(model: LanguageModel) -> None:
    assert advised(model) is None
    remember(model, "occlusion")
    assert advised(model) == "occlusion"
    e = raison.explain(model, TEXT)
    assert (e.method, e.notes["auto"]) == ("occlusion", "occlusion: an audit of this model recommended it")
    assert e.scores == raison.explain(model, TEXT, "occlusion").scores
    assert raison.explain(model, TEXT, budget=9).method == "kernel_shap"
    # Exact values need no recommendation.
    assert raison.explain(model, "so good").method == "shapley_exact"


def test_a_comparison_says_that_auto_followed_an_audit(model: LanguageModel) -> None:
    """Its numbers are those of this machine's cache: elsewhere auto chooses another method."""

    def warnings(*methods: str) -> tuple[str, ...]:
        return raison.compare(model, [TEXT], methods, "sufficiency", progress=False).cautions

    assert warnings("auto", "occlusion") == ()
    remember(model, "saliency")
    assert warnings("auto", "occlusion") == (
        "auto follows an audit in this machine's cache, which recommended saliency",
    )
    assert warnings("occlusion") == ()


@pytest.mark.parametrize("schema", [1, 3])
def test_the_recommendation_of_another_version_counts_as_none(model: LanguageModel, schema: int) -> None:
    """Schema 1 asked neither for 30 texts nor for a comparison with kernel_shap."""
    remember(model, "occlusion")
    place = kept(model)
    assert place is not None
    place.write_text(json.dumps(json.loads(place.read_text(encoding="utf-8")) | {"schema": schema}), encoding="utf-8")
    assert advised(model) is None


def test_a_changed_model_has_none(model: LanguageModel) -> None:
    remember(model, "occlusion")
    assert kept(model) is not None
    with torch.no_grad():
        next(model.core.parameters()).mul_(1.5)  # type: ignore[attr-defined]
    assert kept(model) is None
    assert advised(model) is None
    assert raison.explain(model, TEXT).method == "kernel_shap"


def test_a_function_has_one_by_its_answers() -> None:
    def load(weight: float) -> LanguageModel:
        def classify(texts: list[str]) -> np.ndarray:
            shares = np.array([1 / (1 + np.exp(-weight * (len(text) - 40) / 20)) for text in texts])
            return np.stack([1 - shares, shares], axis=1)

        return raison.load(classify, classes=["no", "yes"])

    remember(load(1.0), "occlusion")
    assert advised(load(1.0)) == "occlusion"
    assert advised(load(-3.0)) is None


def test_other_models_have_none() -> None:
    remember(raison.load(*TINY["bert"]()), "occlusion")
    assert advised(Linear()) is None


def test_resumed_work_must_find_the_same_recommendation(model: LanguageModel) -> None:
    auto = CATALOGUE.create("auto")
    assert auto.files(model) == ()
    remember(model, "occlusion")
    assert auto.files(model) == (kept(model),)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda held: "",
        lambda held: "[]",
        lambda held: json.dumps(held)[:-9],
        lambda held: "[" * 9_000,
        lambda held: json.dumps({"schema": 1}),
        lambda held: json.dumps(held | {"schema": 99}),
        lambda held: json.dumps(held | {"method": 3}),
        lambda held: json.dumps(held | {"method": "x" * 300}),
        lambda held: json.dumps(held | {"identity": {"model weights": "another"}}),
        lambda held: json.dumps(held | {"more": "x" * 20_000}),
    ],
)
def test_a_file_that_is_no_recommendation_counts_as_none(
    model: LanguageModel, spoil: Callable[[dict[str, object]], str]
) -> None:
    remember(model, "occlusion")
    place = kept(model)
    assert place is not None
    place.write_text(spoil(json.loads(place.read_text(encoding="utf-8"))), encoding="utf-8")
    assert advised(model) is None
    e = raison.explain(model, TEXT)
    assert e.method == "kernel_shap"
    assert e.notes["auto"].endswith("its file is damaged or of another version (audit again)")
    place.unlink()
    assert "audit" not in raison.explain(model, TEXT).notes["auto"]


def test_bytes_that_are_no_text_count_as_none(model: LanguageModel) -> None:
    remember(model, "occlusion")
    place = kept(model)
    assert place is not None
    place.write_bytes(b"\xff\xfe\x00")
    assert advised(model) is None


@pytest.mark.parametrize(
    "call",
    [
        "nothing",
        "auto(budget=1000000)",
        "kernel_shap(samples=1000000)",
        "kernel_shap(samples=",
        "__import__('os').system('true')",
        "aml(checkpoint='../elsewhere')",
        "aml(checkpoint='elsewhere')",
        "ensemble(methods=('lime', 'aml'))",
        "resampled(method='integrated_gradients(steps=1)', baselines=1)",
    ],
)
def test_a_call_that_cannot_be_trusted_is_passed_over(model: LanguageModel, call: str) -> None:
    remember(model, call)
    assert raison.explain(model, TEXT).method == "kernel_shap"


def test_harmless_calls_name_no_file_and_no_method() -> None:
    told = {
        "occlusion": True,
        "kernel_shap(samples=64, estimator='gaussian_process')": True,
        "aml": True,
        "aml(metric='sufficiency')": False,
        "ensemble(methods=('lime', 'occlusion'))": False,
        "auto": False,
        "auto(budget=50)": False,
    }
    assert {call: harmless(CATALOGUE.create(call)) for call in told} == told


def test_the_cache_holds_no_text(model: LanguageModel) -> None:
    remember(model, "occlusion")
    [place] = Path(advice.folder()).iterdir()
    held = json.loads(place.read_text(encoding="utf-8"))
    assert set(held) == {"schema", "method", "identity"}
    assert set(held["identity"]) == {"model weights", "tokenizer", "model configuration"}


def test_a_function_that_has_changed_has_none() -> None:
    def saying(yes: float) -> LanguageModel:
        return raison.load(lambda texts: [[1 - yes, yes]] * len(texts), classes=["no", "yes"], name="f")

    remember(saying(0.7), "occlusion")
    assert advised(saying(0.7)) == "occlusion"
    changed = saying(0.2)
    assert advised(changed) is None
    remember(changed, "lime")
    assert advised(changed) == "lime"


def test_a_function_is_asked_for_its_identity_once_however_many_batches_auto_explains() -> None:
    asked: list[str] = []

    def answer(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[0.3, 0.7] for _ in texts]

    texts = [f"{TEXT} {number}" for number in range(70)]
    raison.explain(raison.load(answer, classes=["no", "yes"]), texts, progress=False)
    alone = len(asked)
    remember(raison.load(lambda texts: [[0.5, 0.5]] * len(texts), classes=["no", "yes"]), "occlusion")
    asked.clear()
    raison.explain(raison.load(answer, classes=["no", "yes"]), texts, progress=False)
    assert len(asked) == alone + 4


def test_a_model_is_identified_once_however_many_batches_auto_explains(
    model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    def identity_of(of: LanguageModel) -> dict[str, str]:
        found.append(of)
        return identity.identity_of(of)

    monkeypatch.setattr(advice, "identity_of", identity_of)
    remember(model, "occlusion")
    explained = raison.explain(model, [f"{TEXT} {number}" for number in range(70)], progress=False)
    assert {e.method for e in explained} == {"occlusion"}
    assert len(found) == 1


def test_advice_that_refuses_one_text_is_left_out_for_that_text_alone(model: LanguageModel) -> None:
    remember(model, "shapley_sampling(samples=20)")
    short, long = "a truly bad and awful film", "the film is a truly bad and awful thing " * 5
    alone = [raison.explain(model, [text], "auto(budget=60)")[0] for text in (short, long)]
    together = raison.explain(model, [short, long], "auto(budget=60)")
    assert [e.method for e in together] == [e.method for e in alone] == ["shapley_sampling", "deep_lift"]
    for one, other in zip(together, alone, strict=True):
        assert one.scores == pytest.approx(other.scores, abs=1e-6)
    assert together[1].notes["auto"].endswith("which an audit recommended, was left out: it did not work")


def test_what_no_option_can_do_is_refused_as_the_last_one_refuses_it(
    model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(model, "shapley_sampling(samples=20)")

    def refuse(*_: object) -> None:
        raise InputError("nothing works")

    monkeypatch.setattr("raison.methods.auto.run_alone", refuse)
    with pytest.raises(InputError, match="nothing works"):
        raison.explain(model, ["a truly bad and awful film", "so good a film that it is"], "auto(budget=60)")


def test_the_files_of_advised_and_combined_methods_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resumed work must find them unchanged."""
    model = raison.load("demo/sst2")
    trained = CATALOGUE.create("amortized_shap").files(model)
    assert trained
    combined = CATALOGUE.create("ensemble(methods=('amortized_shap', 'saliency'))")
    assert combined.files(model) == trained
    assert combined.trained
    assert not CATALOGUE.create("ensemble(methods=('occlusion', 'saliency'))").trained
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))
    remember(model, "amortized_shap")
    assert CATALOGUE.create("auto").files(model)[1:] == CATALOGUE.create("amortized_shap").files(model)
