"""The only caller of metrics of single texts: computes everything they request in one go, then one number per text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from raison.core.inputs.rationale import Rationale
from raison.core.metric import GroupMetric, Metric, Need
from raison.core.registry import label_of
from raison.core.results.explanation import Explanation
from raison.core.targets.outputs import Outputs
from raison.explaining.batch import Batch
from raison.explaining.evidence import TextEvidence, prefetch
from raison.explaining.given_texts import read_names
from raison.explaining.returned_values import checked_value
from raison.metrics import CATALOGUE
from raison.runs.summary import Value

AnyMetric = Metric | GroupMetric
Metrics = str | AnyMetric | Iterable[str | AnyMetric]
"""One metric, or any sequence of them."""
Annotations = Sequence[Sequence[Rationale]]
"""Per text, one rationale per annotator."""


def create_metrics(metrics: Metrics) -> list[AnyMetric]:
    """Instances of one metric or any sequence of them, by name or as they are. Raises UnknownNameError, InputError."""
    return [CATALOGUE.create(metric) for metric in read_names(metrics)]


LACKS = {
    Need.RATIONALES: "rationales, which the data does not have",
    Need.EMBEDDINGS: "word embeddings that can be moved, which the model does not have",
    Need.HIDDEN_STATES: "hidden states, which the model does not expose",
    Need.SEVERAL_TEXTS: "more than one text",
    Need.CLASSES: "probabilities of classes",
    Need.PROBABILITIES: "probabilities of classes or statements",
    Need.WHOLE_TEXTS: "predictions of whole texts, but the model predicts at positions (leave the metric out)",
    Need.VALUES: "explanations of an output's log-probability (of='log_probability'), not sums over its tokens",
    Need.METHOD: "the method itself, not only its scores",
}


_WITHOUT: Mapping[Outputs, str] = {
    "number": "the model outputs one number (leave the metric out)",
    "statement": "the explained value is a statement's likelihood (leave the metric out)",
}


def lacking_of(outputs: Outputs) -> dict[Need, str]:
    """The needs of metrics that a model with these outputs cannot meet, each with the reason."""
    needs = {"number": (Need.CLASSES, Need.PROBABILITIES), "statement": (Need.CLASSES,)}.get(outputs, ())
    return dict.fromkeys(needs, _WITHOUT.get(outputs, ""))


def missing_needs(
    metrics: Sequence[AnyMetric], given: frozenset[Need], why: Mapping[Need, str] = MappingProxyType({})
) -> list[str]:
    """One reason per metric and unmet need; `why` explains some of them further."""
    return [
        f"{label_of(metric)} needs {LACKS[need]}" + (f": {why[need]}" if need in why else "")
        for metric in metrics
        for need in sorted(metric.needs - given)
    ]


def measure(
    batch: Batch,
    explanations: Sequence[Explanation],
    metrics: Sequence[Metric],
    rationales: Annotations = (),
) -> list[list[Value]]:
    """Every metric of explanation i, which is one of the batch's text i modulo the batch's length.

    Explanations of several methods follow each other, so that keeps that they share are evaluated once. Raises
    AnswerError if a metric returns something other than its values.
    """
    texts = len(batch.encoding)
    marks = [tuple(one) for one in rationales] or [()] * texts
    first = TextEvidence(batch, 0, explanations[0])
    evidence = [
        replace(first, text=i % texts, explanation=explanation, marked=marks[i % texts], number=i)
        for i, explanation in enumerate(explanations)
    ]
    prefetch(evidence, metrics)
    return [[_measured(metric, one) for metric in metrics] for one in evidence]


def _measured(metric: Metric, evidence: TextEvidence) -> Value:
    explanation = evidence.explanation
    return checked_value(metric.measure(explanation, replace(evidence, metric=metric)), metric, explanation.text)
