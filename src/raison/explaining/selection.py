"""The best of a method's maps by a metric, text by text."""

import math
from collections.abc import Sequence
from dataclasses import replace

from raison.core.errors import InputError, UnsupportedError
from raison.core.method import Method, Property
from raison.core.metric import GroupMetric, Metric
from raison.core.note_names import CANDIDATE_VALUES, CANDIDATES, CAUTION, SELECTED_BY
from raison.core.registry import label_of, name_of
from raison.core.results.explanation import Explanation
from raison.explaining.batch import Batch
from raison.explaining.evidence import EXPLAINS_AGAIN, TextEvidence
from raison.explaining.measuring import Annotations, AnyMetric, measure
from raison.explaining.returned_values import announced
from raison.methods import CATALOGUE

CONTROL = "random(draws={})"
"""The same number of random maps as the method offers, to measure the effect of choosing alone."""

_WITH_SETTINGS = {"random": CONTROL.format(24), "aml": "aml(steps=10)"}

CandidateMaps = Sequence[Sequence[Explanation]]
"""What a method offers: per map, the explanations of all texts of a batch."""


def check_selection(choosers: Sequence[AnyMetric], methods: Sequence[Method]) -> None:
    """Raise UnsupportedError, with every reason, for metrics that cannot select maps; InputError if there is only one
    map.
    """
    reasons = [f"{label_of(metric)} {reason}" for metric in choosers for reason in _reasons_against(metric)]
    if reasons:
        raise UnsupportedError("these metrics cannot select a map", reasons)
    if choosers and not any(method.maps > 1 for method in methods):
        names, offer = ", ".join(label_of(method) for method in methods), "offers" if len(methods) == 1 else "offer"
        raise InputError(
            f"select= chooses one of several maps of a method, but {names} {offer} only one: use a method that offers "
            f"several, such as {', '.join(_offering())}."
        )


def best_maps(
    batch: Batch, offers: Sequence[CandidateMaps], metrics: Sequence[Metric], rationales: Annotations = ()
) -> list[list[list[Explanation]]]:
    """For each offer and metric, the best map for each text; the first one if values are equal.

    The maps of all offers are measured together, so that shared work is done once. The explanations' notes say how they
    were selected: by which metric, among how many, with which values. The cost of choosing is added to their
    evaluations.
    """
    flat = [explanation for maps in offers for of_map in maps for explanation in of_map]
    measured = iter(measure(batch, flat, metrics, rationales))
    chosen = []
    for maps in offers:
        table = [[next(measured) for _ in of_map] for of_map in maps]
        chosen.append([_best(batch, maps, metric, _column(table, i)) for i, metric in enumerate(metrics)])
    return chosen


def _reasons_against(metric: AnyMetric) -> list[str]:
    if isinstance(metric, GroupMetric):
        return ["evaluates many texts together"]
    if metric.higher_is_better is None:
        return ["has no better or worse values"]
    if metric.pool == "curve":
        return ["returns a curve as well as a value: use it without curve=True"]
    if metric.pool != "mean":
        return ["is not a mean over texts"]
    return ["explains the text again, which yields no selected map"] if metric.needs & EXPLAINS_AGAIN else []


def _offering() -> list[str]:
    """Methods with several maps; some have several only with a setting."""
    names = [name_of(one) for one in CATALOGUE.usable() if Property.CANDIDATES in one.properties]
    return [_WITH_SETTINGS.get(name, name) for name in names]


def _column(table: Sequence[Sequence[Sequence[object]]], metric: int) -> list[list[float]]:
    """One metric's values: per map, of all texts. A metric that can choose has one number per text."""
    return [[float(values[metric]) for values in of_map] for of_map in table]  # type: ignore[arg-type]


def _best(batch: Batch, maps: CandidateMaps, metric: Metric, table: Sequence[Sequence[float]]) -> list[Explanation]:
    chosen = []
    for text in range(len(batch.encoding)):
        values = [of_map[text] for of_map in table]
        goodness = [_goodness(value, metric) for value in values]
        best = goodness.index(max(goodness))
        explanation = maps[best][text]
        notes = {
            # A caution about the method's unselected map does not apply to this one.
            **{name: note for name, note in explanation.notes.items() if name != CAUTION},
            SELECTED_BY: label_of(metric),
            CANDIDATES: len(maps),
            CANDIDATE_VALUES: [None if math.isnan(value) else value for value in values],
        }
        extra = _passes(batch, text, [of_map[text] for of_map in maps], metric)
        chosen.append(replace(explanation, notes=notes, evaluations=explanation.evaluations + extra))
    return chosen


def _goodness(value: float, metric: Metric) -> float:
    if math.isnan(value):
        return -math.inf
    return value if metric.higher_is_better else -value


def _passes(batch: Batch, text: int, candidates: Sequence[Explanation], metric: Metric) -> int:
    """Different perturbed texts that the choice looked at; the whole text is known anyway."""
    keys = set()
    for explanation in candidates:
        evidence = TextEvidence(batch, text, explanation)
        for removal, keeps in announced(metric, explanation).items():
            keys |= {(evidence.resolve(removal), row.tobytes()) for row in keeps if not row.all()}
    return len(keys)
