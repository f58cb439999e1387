"""A model that offers nothing but predictions gets every method that only removes parts of a text, and every metric."""

from collections.abc import Sequence

import pytest
from torch import Tensor

import raison
from raison.core.errors import RaisonError, UnknownNameError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.rationale import Span
from raison.core.inputs.unit import Granularity, Text
from raison.core.method import Method
from raison.core.metric import GroupMetric, Metric, Need
from raison.core.model import LanguageModel
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from tests.toys import TEXTS, Linear


class BlackBox(LanguageModel):
    """A toy of which only the predictions are known."""

    classes, multi_label, removals, max_tokens = Linear.classes, False, Linear.removals, Linear.max_tokens

    def __init__(self) -> None:
        self.name = "black box"
        self._toy = Linear()

    def encode(self, texts: Sequence[Text], unit: Granularity, truncate: bool = False) -> Encoding:
        return self._toy.encode(texts, unit, truncate)

    def masked_logits(self, encoding: Encoding, keeps: Sequence[Tensor], removal: str) -> list[Tensor]:
        return self._toy.masked_logits(encoding, keeps, removal)


def able(name: str) -> Method:
    method = METHODS.create(name)
    if reasons := method.lacking(BlackBox()):
        pytest.skip("; ".join(reasons))
    try:
        method.check(BlackBox())
    except RaisonError as refusal:
        pytest.skip(str(refusal))
    return method


@pytest.mark.parametrize("name", METHODS.names)
def test_methods_that_only_remove_give_what_they_give_on_the_open_model(name: str) -> None:
    method = able(name)
    found, expected = (raison.explain(model, list(TEXTS[:2]), method) for model in (BlackBox(), Linear()))
    assert [one.scores for one in found] == [pytest.approx(other.scores) for other in expected]


def test_a_model_that_can_only_delete() -> None:
    class Deleting(BlackBox):
        removals = ("delete",)

        def masked_logits(self, encoding: Encoding, keeps: Sequence[Tensor], removal: str) -> list[Tensor]:
            return super().masked_logits(encoding, keeps, "delete")

    model = Deleting()
    given = raison.explain(model, list(TEXTS[:3]), "occlusion")
    scores = raison.evaluate(model, given, progress=False)
    assert "comprehensiveness" in [one.metric for one in scores.metrics]
    with pytest.raises(UnknownNameError, match="mask"):
        raison.explain(model, TEXTS[0], "occlusion", removal="mask")


def test_there_are_such_methods() -> None:
    free = {name for name in METHODS.names if not METHODS.get(name).needs}
    assert {"lime", "kernel_shap", "occlusion", "partition_shap", "shapley_sampling", "random"} <= free


# It trains students, which see texts and predictions and nothing of the model.
@pytest.mark.parametrize("name", [name for name in METRICS.names if name != "simulatability"])
def test_metrics_measure_or_say_what_is_missing(name: str) -> None:
    metric: Metric | GroupMetric = METRICS.create(name)
    texts = list(TEXTS)
    given = raison.explain(BlackBox(), texts, "occlusion")
    marks = [[[Span(0, 3)]]] * len(texts)
    if metric.needs & {Need.EMBEDDINGS, Need.HIDDEN_STATES}:
        with pytest.raises(UnsupportedError, match="lacks the capability"):
            raison.evaluate(BlackBox(), given, [metric], rationales=marks, progress=False)
        return
    found, expected = (
        raison.evaluate(model, given, [metric], rationales=marks, progress=False) for model in (BlackBox(), Linear())
    )
    assert found.metrics[0].values == pytest.approx(expected.metrics[0].values, nan_ok=True)
