"""A model that offers nothing but predictions gets every method that only removes parts of a text, and every metric."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

import raison
from raison.core.errors import AnswerError, InputError, NonFiniteError, RaisonError, UnknownNameError, UnsupportedError
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


class Mistaken(BlackBox):
    """An adapter that is being written: its logits are made wrong, or its facts."""

    def __init__(self, made: Callable[[list[Tensor]], object] = list, **facts: object) -> None:
        super().__init__()
        self._made = made
        vars(self).update(facts)

    def masked_logits(self, encoding: Encoding, keeps: Sequence[Tensor], removal: str) -> Any:
        return self._made(super().masked_logits(encoding, keeps, removal))


RETURNED: dict[str, tuple[Callable[[list[Tensor]], object], str]] = {
    "columns": (lambda given: [torch.cat([one, one], 1) for one in given], "tensor of shape 1 x 4 and type float64"),
    "row": (lambda given: [one[:-1] for one in given], "a tensor of shape 0 x 2"),
    "text": (lambda given: given[:-1], r"returned 3 tensors for 4 texts: it has to return a list with a tensor for"),
    "array": (
        lambda given: [one.numpy() for one in given],
        "returned something of type ndarray for 'not a terrible film . good'",
    ),
    "together": (torch.cat, "returned Tensor for 4 texts"),
    "whole": (lambda given: [one.long() for one in given], "type int64"),
    "nan": (lambda given: [one * torch.nan for one in given], "returned NaN for 'not a terrible film . good'"),
}


@pytest.mark.parametrize("case", RETURNED)
def test_what_an_adapter_returns_is_checked(case: str) -> None:
    made, message = RETURNED[case]
    with pytest.raises((AnswerError, NonFiniteError), match=message) as caught:
        raison.explain(Mistaken(made), TEXTS, "occlusion", progress=False)
    assert str(caught.value).startswith("Mistaken.masked_logits returned ")


def test_what_it_returns_for_parts_of_texts_is_checked_as_well() -> None:
    model = Mistaken(lambda given: [one[:, :1] if len(one) > 1 else one for one in given])
    with pytest.raises(AnswerError, match=r"6 x 1 and type float64 .*: it has to return .* 6 keeps x 2 classes"):
        raison.explain(model, TEXTS[1], "occlusion")


def test_infinite_logits_stand_for_certainty() -> None:
    model = Mistaken(lambda given: [torch.where(one > 0, torch.inf, one) for one in given])
    assert raison.explain(model, TEXTS[0], "occlusion", of="logit", target=0).value_full < 0


@pytest.mark.parametrize(
    ("fact", "value", "words"),
    [
        ("classes", ["no", "yes"], "a tuple of one or more names"),
        ("classes", (), "a tuple of one or more names"),
        ("removals", (), "a tuple of one or more names"),
        ("name", None, "a text"),
        ("multi_label", "no", "True or False"),
        ("max_tokens", 1.5, "a whole number, or None without a limit"),
    ],
)
def test_facts_of_another_type_are_refused(fact: str, value: object, words: str) -> None:
    with pytest.raises(InputError) as caught:
        raison.explain(Mistaken(**{fact: value}), TEXTS[0], "occlusion")
    assert str(caught.value) == f"Mistaken.{fact} is {value!r}: it has to be {words}."


def test_a_forgotten_fact_is_named() -> None:
    model = Mistaken()
    del model.name
    with pytest.raises(InputError, match="^Mistaken does not state name: an adapter sets it to a text.$"):
        raison.explain(model, TEXTS[0], "occlusion")


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
