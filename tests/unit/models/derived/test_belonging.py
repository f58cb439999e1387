"""An explainer is used only on the model that it was trained for, in any precision."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import raison
from raison.core.errors import UnsupportedError
from raison.methods.aml import Aml
from raison.models.adapters.classifier import Classifier
from raison.models.derived.belonging import marks_of
from raison.models.derived.explainers import TOLERANCE, said_by
from tests.explainers import edit, untrained, untrained_values
from tests.tiny import TINY

TEXT = "a dull plot and nobody believed him"


def sure(seed: int) -> Classifier:
    """A tiny model whose head is drawn by the seed, and which is sure of its first class."""
    model, tokenizer = TINY["bert"]()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        weight = model.classifier.weight
        weight.add_(0.5 * torch.randn(weight.shape, generator=generator))
        model.classifier.bias.copy_(torch.tensor([9.0, 0.0, 0.0]))
    adapter = raison.load(model, tokenizer)
    assert isinstance(adapter, Classifier)
    return adapter


def half(adapter: Classifier) -> None:
    adapter.model.to(torch.float16)


def brain(adapter: Classifier) -> None:
    adapter.model.to(torch.bfloat16)


def rounded(adapter: Classifier) -> None:
    """As an adapter's weights that are merged on another processor: others in the last place."""
    with torch.no_grad():
        for parameter in adapter.model.parameters():
            parameter.mul_(1 + 1e-7)


def test_a_model_that_is_as_sure_of_the_probes_is_refused(tmp_path: Path) -> None:
    first, second = sure(1), sure(2)
    assert all(
        abs(a - b) < TOLERANCE
        for x, y in zip(said_by(first), said_by(second), strict=True)
        for a, b in zip(x, y, strict=True)
    )
    untrained(first, tmp_path / "aml")
    untrained_values(first, tmp_path / "amortized_shap")
    for method in ("aml", "amortized_shap"):
        folder = tmp_path / method
        assert raison.explain(first, TEXT, f"{method}(checkpoint={str(folder)!r})").scores
        with pytest.raises(UnsupportedError, match="its weights are not the model's, and on parts of two texts their"):
            raison.explain(second, TEXT, f"{method}(checkpoint={str(folder)!r})")
    # The card of an older version, which cannot tell them apart.
    edit(tmp_path / "aml", lambda card: [card.pop(name) for name in ("identity", "logits")] and card.update(schema=1))
    assert raison.explain(second, TEXT, Aml(str(tmp_path / "aml"))).scores


@pytest.mark.parametrize("change", [half, brain, rounded])
def test_the_same_model_in_another_precision_is_accepted(change: Callable[[Classifier], None], tmp_path: Path) -> None:
    untrained(sure(1), tmp_path)
    changed = sure(1)
    change(changed)
    assert marks_of(changed)["identity"] != marks_of(sure(1))["identity"]
    assert raison.explain(changed, TEXT, Aml(str(tmp_path))).scores


def test_a_model_of_the_same_weights_is_accepted_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    untrained(sure(1), tmp_path)
    monkeypatch.delattr("raison.models.derived.belonging.said_by")
    assert raison.explain(sure(1), TEXT, Aml(str(tmp_path))).scores
