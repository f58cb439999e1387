"""A caller's autocast changes no number: a model that should compute with 16 bits is loaded so."""

import pytest
import torch

import raison
from raison.explaining.settings import Settings
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from raison.models.stack.eval_mode import half_precision
from raison.trust.attack_settings import EmbeddingAttack
from raison.trust.attacks import attacks
from tests.tiny import TEXTS, build, build_language_model

METHODS = (
    "occlusion",
    "kernel_shap",
    "integrated_gradients",
    "deep_lift",
    "decompx",
    "attention_rollout",
    "attn_lrp",
    "value_zeroing",
    "rpi",
)


def autocast() -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16)


@pytest.fixture(scope="module", name="model")
def _model() -> Classifier:
    loaded = raison.load(*build("bert"))
    assert isinstance(loaded, Classifier)
    return loaded


@pytest.mark.parametrize("method", METHODS)
def test_explanations_inside_autocast_equal_those_outside(model: Classifier, method: str) -> None:
    outside = raison.explain(model, list(TEXTS), method, progress=False)
    with autocast():
        inside = raison.explain(model, list(TEXTS), method, progress=False)
        assert torch.is_autocast_enabled("cpu")
    for one, other in zip(inside, outside, strict=True):
        assert one.scores == pytest.approx(other.scores, abs=1e-7)
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-7)


def test_measurements_and_outputs_do_not_change_either(model: Classifier) -> None:
    metrics = ["comprehensiveness", "max_sensitivity", "consistency"]
    writer = raison.load(*build_language_model("llama"))

    def numbers() -> list[float]:
        table = raison.compare(model, TEXTS, "saliency", metrics, progress=False)
        written = raison.explain(writer, "a quiet film", "occlusion", max_new_tokens=3)
        means = [one.summary.mean for row in table.rows for one in row.metrics]
        return means + [score for row in written.scores for score in row]

    outside = numbers()
    with autocast():
        assert numbers() == pytest.approx(outside, abs=1e-7, nan_ok=True)


def test_attacks_do_not_change_either(model: Classifier) -> None:
    plan = EmbeddingAttack(epsilon=1.0, relative=True, steps=2, optimiser="sign", draws=1)
    methods = [CATALOGUE.create(name) for name in ("saliency", "integrated_gradients")]

    def numbers() -> list[float]:
        records = [record for some in attacks(model, TEXTS, methods, Settings(), plan) for record in some]
        return [value for one in records for value in (one.sum_change, one.probability_change)]

    outside = numbers()
    with autocast():
        assert numbers() == pytest.approx(outside, abs=1e-7)


def test_a_training_keeps_its_own(model: Classifier) -> None:
    encoding = model.encode(["a quiet film"])
    full = model.passes.decisions(encoding)
    with torch.no_grad(), half_precision("cpu", True):
        halved = model.passes.decisions(encoding)
    assert (halved.double() - full.double()).abs().max() > 1e-6
    with torch.no_grad(), autocast(), half_precision("cpu", False):
        torch.testing.assert_close(model.passes.decisions(encoding), full, atol=1e-7, rtol=0)
