"""From the records of a study of trust to values of single texts, their means with intervals, curves and areas."""

import math
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Literal, get_args

import numpy as np

from raison.core.results.scores import Summary
from raison.numerics.measures.plausibility import mean_defined
from raison.numerics.measures.randomisation import area
from raison.numerics.statistics.bootstrap import mean_interval
from raison.trust.records import Attacked, AttackKey, Order, SimilarityKey
from raison.trust.results import AttackVariant, TrustRun

AgreementMeasure = Literal["spearman", "kendall", "overlap"]
Effect = Literal["rank_change", "sum_change", "probability_change", "absolute_probability_change"]
MEASURES: tuple[AgreementMeasure, ...] = get_args(AgreementMeasure)
EFFECTS: tuple[Effect, ...] = get_args(Effect)
Values = Mapping[int, float]
"""A value per text, by the text's number; NaN if it is undefined."""

UNCHANGED = 1.0
"""The similarity of an explanation with itself, before anything is randomised."""


def at_blocks(run: TrustRun, method: str, order: Order, blocks: int, measure: AgreementMeasure) -> Values:
    """Each text's similarity with this many blocks randomised (or only that block), averaged over draws."""
    draws: dict[int, list[float]] = {}
    table = run.header.randomisation
    for draw, text in product(range(table.draws), range(table.texts)) if table else ():
        record = run.similarities.get(SimilarityKey(method, order, blocks, draw, text))
        if record is not None:
            draws.setdefault(text, []).append(getattr(record, measure))
    return {text: mean_defined(values) for text, values in draws.items()}


def curve(run: TrustRun, method: str, order: Order, measure: AgreementMeasure) -> tuple[Summary, ...]:
    """Mean similarity over texts for each number of blocks, with its 95 % bootstrap interval."""
    return tuple(
        summary(at_blocks(run, method, order, blocks, measure).values()) for blocks in range(1, run.blocks + 1)
    )


def areas(run: TrustRun, method: str, order: Order, measure: AgreementMeasure) -> Values:
    """Each text's area under its curve (numerics/measures/randomisation.py); texts that lack a point are left out."""
    columns = [at_blocks(run, method, order, blocks, measure) for blocks in range(1, run.blocks + 1)]
    whole = set.intersection(*(set(column) for column in columns)) if columns else set()
    return {text: area(np.array([column[text] for column in columns]), order) for text in sorted(whole)}


def effects(run: TrustRun, method: str, variant: AttackVariant, measure: Effect) -> Values:
    """The effect of an attack on each text's explanation."""
    values = {}
    for text in range(run.header.attacks.texts if run.header.attacks else 0):
        record = run.attacks.get(AttackKey(method, variant.attack, variant.objective, text))
        if record is not None:
            values[text] = _effect(record, measure)
    return values


def held(run: TrustRun, method: str, variant: AttackVariant) -> tuple[int, int]:
    """The number of texts on which an attack found a change that keeps the prediction, and the number of texts."""
    texts = range(run.header.attacks.texts if run.header.attacks else 0)
    keys = [AttackKey(method, variant.attack, variant.objective, text) for text in texts]
    kept = [run.attacks[key].held for key in keys if key in run.attacks]
    return sum(kept), len(kept)


def summary(values: Iterable[float]) -> Summary:
    """The mean over the texts on which a value is defined, with its interval; NaN and a count of zero without any."""
    known = [value for value in values if not math.isnan(value)]
    return Summary(*mean_interval(known), len(known))


def _effect(record: Attacked, measure: Effect) -> float:
    if measure == "absolute_probability_change":
        return abs(record.probability_change)
    return float(getattr(record, measure))
