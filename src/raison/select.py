"""The best of a method's maps by a metric, text by text."""

import math
from collections.abc import Sequence
from dataclasses import replace

from raison.attribution import Batch
from raison.core.errors import InputError, UnsupportedError
from raison.core.explanation import Explanation
from raison.core.method import Method
from raison.core.metric import GroupMetric, Metric
from raison.core.registry import label_of
from raison.evaluate import Annotations, AnyMetric, measure
from raison.evidence import TextEvidence


def check_selection(choosers: Sequence[AnyMetric], methods: Sequence[Method]) -> None:
    """UnsupportedError, with every reason, for metrics that cannot choose a map; InputError if there is no choice."""
    reasons = []
    for metric in choosers:
        if isinstance(metric, GroupMetric):
            reasons.append(f"{label_of(metric)} judges many texts together")
        elif metric.higher_is_better is None:
            reasons.append(f"{label_of(metric)} says neither better nor worse")
        elif metric.pool != "mean":
            reasons.append(f"{label_of(metric)} is no mean over texts")
    if reasons:
        raise UnsupportedError("these metrics cannot choose a map", reasons)
    if choosers and not any(method.maps > 1 for method in methods):
        raise InputError(
            "select= chooses among several maps of a method, but none of the methods offers any: "
            'add one that does, such as "random(draws=24)".'
        )


def best_maps(
    batch: Batch, maps: Sequence[Sequence[Explanation]], metric: Metric, rationales: Annotations = ()
) -> list[Explanation]:
    """Of each text's maps the one with the best value; the first of equals. What choosing cost is added.

    The explanation's notes say how it was selected: by which metric, among how many, with which values.
    """
    texts = len(batch.encoding)
    flat = [explanation for of_map in maps for explanation in of_map]
    table = [float(row[0]) for row in measure(batch, flat, [metric], rationales)]  # type: ignore[arg-type]
    chosen = []
    for text in range(texts):
        values = table[text::texts]
        best = max(range(len(values)), key=lambda i, values=values: (_goodness(values[i], metric), -i))
        found = maps[best][text]
        notes = {
            **found.notes,
            "selected_by": label_of(metric),
            "candidates": len(maps),
            "candidate_values": [None if math.isnan(value) else value for value in values],
        }
        extra = _passes(batch, text, [of_map[text] for of_map in maps], metric)
        chosen.append(replace(found, notes=notes, evaluations=found.evaluations + extra))
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
        for removal, keeps in metric.keeps(explanation).items():
            keys |= {(evidence.resolve(removal), row.tobytes()) for row in keeps if not row.all()}
    return len(keys)
