"""The evidence of an audit: each question's answer about one method, with its numbers and its light.

Lights are rules on intervals, written down here and shown with every verdict; they only summarise the numbers shown
next to them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from raison.core.results.scores import Comparison, MetricScores, Scores, Summary
from raison.numerics.statistics.bounded import Bounds
from raison.numerics.statistics.multiple import holm
from raison.numerics.statistics.paired import Difference, against
from raison.numerics.statistics.power import SIGNIFICANCE
from raison.numerics.statistics.student import FEWEST
from raison.report.style import phrases
from raison.report.tables.records import Light
from raison.runs.judging import Border, Finding, finding_of
from raison.runs.statistics import subtract
from raison.studies.kinds.audit.recommendation import COMPREHENSIVE, SUFFICIENT, count_of, faithfulness
from raison.trust.records import AttackKey, Order
from raison.trust.results import AttackVariant, TrustRun
from raison.trust.tables import Effect, areas, at_blocks, effects, summary

HARMLESS = "harmless_change"
_HOW = {
    "embedding": "by shifted word embeddings",
    "noise": "by the best of random shifts of that size",
    "substitution": "by replacing words with similar ones",
}
CORRELATION, SHARE = Bounds(-1.0, 1.0), Bounds(0.0, 1.0)
"""The ranges of the values that decide lights."""
INSENSITIVE, UNRELATED, LOST = 1.0, 0.0, 1.0
"""The value of a text on which a method fails: the scores do not depend on the parameters, have nothing to do with
those of the changed text, or lose all top ranks."""
ORDER: Order = "cascading"
BORDER = {
    False: "two classes are equally probable",
    True: "the text does not change the score, or two documents have the same score",
}
"""Why texts are not attacked; of a model with one number."""
_SINGLE = "No tested text has more than one unit, so there is no order to compare."

AuditQuestion = Literal["faithful", "parameters", "changes", "attacks"]

HALF = 0.5
"""The threshold for the mean along a randomisation curve, and for the share of top ranks that an attack changes."""
STEADY = 0.8
"""Minimum rank correlation of explanations that count as the same after a harmless change."""
HARD = 0.25
"""Share of top ranks below which an attack counts as failed."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """The answer to one question about one method.

    `value` decides the light; None, with a grey light, if the question does not apply: `says` gives the reason. For
    "faithful" it is the sum of two gains over random scores, of which each is judged on its own. `shown` is whether it
    was shown that something speaks for the method: without it, it is not recommended. `undecided` is whether an amber
    light's interval lies on the green side, but so few texts do not confirm it.
    """

    question: AuditQuestion
    light: Light
    value: Summary | None
    says: str
    shown: bool = True
    undecided: bool = False


@dataclass(frozen=True, slots=True)
class _Count:
    """One of the two sides of faithfulness: a method's scores, those of random scores, and how much better it is."""

    name: str
    own: MetricScores
    random: MetricScores
    gap: Difference

    @property
    def finding(self) -> Finding:
        """The verdict on "better than random scores", before a correction."""
        return finding_of(self.gap, "above")


def faithful(rows: Sequence[Scores], random: Scores) -> list[AuditFinding]:
    """Better than random scores on both sides: removing the top units, and keeping them alone.

    The more methods, the likelier one is better by chance: Holm's correction is over all methods and both sides.
    """
    counts = [_counts(row, random) for row in rows]
    adjusted = iter(holm([count.gap.confirmed for of_row in counts for count in of_row]))
    return [
        _faithful(of_row, [next(adjusted) for _ in of_row], summary(_gains(row, random)))
        for row, of_row in zip(rows, counts, strict=True)
    ]


def _counts(row: Scores, random: Scores) -> list[_Count]:
    more, less = ((count_of(row, count), count_of(random, count)) for count in (COMPREHENSIVE, SUFFICIENT))
    return [
        _Count("comprehensiveness", *more, subtract(*more)),
        _Count("sufficiency", *less, subtract(less[1], less[0])),
    ]


def _faithful(counts: Sequence[_Count], adjusted: Sequence[float], value: Summary) -> AuditFinding:
    alone = [count.finding for count in counts]
    findings = [
        "undecided" if one in ("holds", "fails") and p >= SIGNIFICANCE else one
        for one, p in zip(alone, adjusted, strict=True)
    ]
    better = findings.count("holds")
    light: Light = "red" if "fails" in findings else "green" if better == 2 else "amber"
    light = "grey" if "too few" in findings else light
    said = {2: "on both counts", 1: "on one count of two", 0: "on neither count"}[better]
    # A score in its own units may have any size.
    digits = phrases.places(*(10 * count.gap.mean for count in counts))
    means = "; ".join(
        f"{count.name} {count.own.summary.mean:.{digits}f}, random {count.random.summary.mean:.{digits}f}, better by "
        f"{phrases.with_interval(count.gap, f'+.{digits}f')}"
        for count in counts
    )
    verdict = "Compared with random scores" if light == "grey" else f"Better than random scores {said}"
    lost = " An interval leaves 0 out, but not after Holm's correction over the methods." if findings != alone else ""
    return AuditFinding("faithful", light, value, f"{verdict}: {means}.{lost}{_few(light)}", better > 0)


def parameters(trust: TrustRun, method: str, single: Collection[int]) -> AuditFinding:
    """Whether the scores change if the model's blocks are filled with random values.

    `single` are the texts with a single unit, which has no order.
    """
    randomised = trust.header.randomisation
    if randomised is None or method not in trust.randomised:
        why = "not measured yet" if randomised is None else randomised.left_out.get(method, "not measured yet")
        return AuditFinding("parameters", "grey", None, f"Not randomised: {why}.")
    curves = [_along(area, trust.blocks) for area in areas(trust, method, ORDER, "spearman").values()]
    value = _within(summary(curves), CORRELATION)
    if not value.count:
        unfinished = "yet" if trust.missing else "that is defined"
        ordered = any(text not in single for text in range(randomised.texts))
        why = f"No text has a complete curve {unfinished}." if ordered else _SINGLE
        return AuditFinding("parameters", "grey", None, why)
    light, undecided = light_of(curves, Border("below", HALF), Border("above", HALF), CORRELATION, INSENSITIVE)
    end = _within(summary(at_blocks(trust, method, ORDER, trust.blocks, "spearman").values()), CORRELATION)
    blocks = "its only block" if trust.blocks == 1 else f"all {trust.blocks} blocks"
    says = (
        f"With {blocks} randomised the scores still correlate by {phrases.with_interval(end, '.2f')} with the model's "
        f"own; mean along the curve {phrases.with_interval(value, '.2f')} (low: depends on the parameters; 1: does not "
        f"depend on them at all), over {phrases.count(value.count, 'text')}."
        f"{_few(light, undecided)}"
    )
    return AuditFinding("parameters", light, value, says, undecided=undecided)


def changes(table: Comparison | None, method: str, single: Collection[int]) -> AuditFinding:
    """Whether the ranks stay as they are if the text changes harmlessly; `single` as in `parameters`."""
    rows = [] if table is None else [row for row in table.rows if row.method == method]
    if table is None or not rows:
        return AuditFinding("changes", "grey", None, "Not measured yet.")
    value = _within(rows[0][HARMLESS].summary, CORRELATION)
    if not value.count:
        ordered = any(text not in single for text in range(table.texts))
        return AuditFinding("changes", "grey", None, "No harmless change could be measured." if ordered else _SINGLE)
    values = rows[0][HARMLESS].values
    light, undecided = light_of(values, Border("above", STEADY), Border("below", HALF), CORRELATION, UNRELATED)
    says = (
        f"Rank correlation {phrases.with_interval(value, '.2f')} between a text and the same text with changes that "
        f"keep the prediction, over {phrases.count(value.count, 'text')}.{_few(light, undecided)}"
    )
    return AuditFinding("changes", light, value, says, undecided=undecided)


def attacks(trust: TrustRun, method: str, number: str, single: Collection[int]) -> AuditFinding:
    """The strongest change decides: an attack, or the best of random shifts, which is also an attack.

    A text with a single unit has no ranks to lose, and one on which no change kept the prediction was not attacked:
    neither is evidence.
    """
    variants = [variant for variant, methods in trust.variants.items() if method in methods]
    by_variant = {variant: _of_ordered(trust, method, variant, "rank_change", single) for variant in variants}
    values = {variant: _within(summary(changes.values()), SHARE) for variant, changes in by_variant.items()}
    known = [variant for variant, value in values.items() if value.count]
    head = trust.header.attacks
    if head is None or not known:
        return AuditFinding("attacks", "grey", None, _unattacked(trust, method, number, single))
    done = sum(key.method == method and head.has(key) for key in trust.attacks)
    unfinished = len(variants) * head.attacked - done
    if unfinished:
        # The strongest attack decides, and it may be among those that are missing.
        says = f"Not finished: {phrases.count(unfinished, 'attack')} on this method are still missing."
        return AuditFinding("attacks", "grey", None, says)
    worst = max(known, key=lambda variant: values[variant].mean)
    value = values[worst]
    lost = list(by_variant[worst].values())
    light, undecided = light_of(lost, Border("below", HARD), Border("above", HALF), SHARE, LOST)
    losses = [f"{_HOW[variant.attack]} {phrases.with_interval(values[variant], '.0%')}" for variant in known]
    moved = summary(_of_ordered(trust, method, worst, "absolute_probability_change", single).values())
    what, digits = f"score ({number})" if number else "probability", phrases.places(10 * moved.mean)
    says = (
        f"Share of the top ranks lost while the prediction holds, over {phrases.count(value.count, 'text')}: "
        f"{', '.join(losses)}. The strongest of these changes the {what} by {moved.mean:.{digits}f}."
        f"{_unheld(trust, method, worst, single)}{_few(light, undecided)}"
    )
    return AuditFinding("attacks", light, value, says, undecided=undecided)


def light_of(values: Sequence[float], green: Border, red: Border, bounds: Bounds, worst: float) -> tuple[Light, bool]:
    """By the rule of claims: whether the mean lies beyond a border; grey if there are too few values.

    Also whether an amber light's interval lies on the green side, but the values do not confirm it: the second test
    does not agree, or texts with the value `worst`, of which none was drawn, may well take the mean to the border.
    """
    parts = np.array(values, dtype=np.float64).reshape(-1, 1)
    gaps = [against(parts, border.at, bounds=bounds) for border in (green, red)]
    good, bad = (finding_of(gap, border.side) for gap, border in zip(gaps, (green, red), strict=True))
    if good == "too few":
        return "grey", False
    if good == "holds":
        missed = _missed(gaps[0].mean + green.at, green.at, worst, gaps[0].count)
        return ("amber", True) if missed >= SIGNIFICANCE else ("green", False)
    if bad == "holds":
        return "red", False
    return "amber", gaps[0].low > 0 if green.side == "above" else gaps[0].high < 0


def _missed(mean: float, border: float, worst: float, count: int) -> float:
    """The probability that none of `count` texts is among those that would take the mean from here to the border, if
    these have the value `worst`: of all texts they are a share q, with mean + q (worst - mean) = border."""
    share = (border - mean) / (worst - mean)
    return float((1 - share) ** count)


def _along(area: float, blocks: int) -> float:
    """The mean along a curve of randomisation without its start, where no block is randomised and every method has 1.

    Of a model with few blocks the start is much of the area: half of it with one block.
    """
    start = 1 / (2 * blocks)
    return (area - start) / (1 - start)


def _few(light: Light, undecided: bool = False) -> str:
    """The note after evidence with too few values."""
    if undecided:
        return " The interval is on the green side, but so few texts may have missed rare failures: undecided."
    return f" Too few texts to judge: at least {FEWEST} are needed." if light == "grey" else ""


def _of_ordered(
    trust: TrustRun, method: str, variant: AttackVariant, measure: Effect, single: Collection[int]
) -> dict[int, float]:
    """The effect of an attack that kept the prediction on the explanation of each text that has an order."""
    found = effects(trust, method, variant, measure)
    held = {text for text in found if trust.attacks[AttackKey(method, variant.attack, variant.objective, text)].held}
    return {text: value for text, value in found.items() if text not in single and text in held}


def _unheld(trust: TrustRun, method: str, variant: AttackVariant, single: Collection[int]) -> str:
    """On how many texts with an order an attack found no change that keeps the prediction."""
    found = [text for text in effects(trust, method, variant, "rank_change") if text not in single]
    left = len(found) - len(_of_ordered(trust, method, variant, "rank_change", single))
    return f" On {phrases.count(left, 'more text')} it found no change that keeps the prediction." if left else ""


def _unattacked(trust: TrustRun, method: str, number: str, single: Collection[int]) -> str:
    """Why no attack on a method is known."""
    attacked = trust.header.attacks
    if attacked is None:
        return "Not attacked: not measured yet."
    if not any(method in methods for methods in trust.variants.values()):
        reasons = [of_kind[method] for of_kind in attacked.left_out.values() if method in of_kind]
        return f"Not attacked: {'; '.join(dict.fromkeys(reasons)) or 'not measured yet'}."
    tested = [text for text in range(attacked.texts) if text not in attacked.boundary]
    if not tested:
        return f"Not attacked: on every text, {BORDER[bool(number)]}."
    if all(text in single for text in tested):
        return _SINGLE
    tried = any(key.method == method and key.text not in single for key in trust.attacks)
    return f"Not attacked: {'no change was found that keeps the prediction' if tried else 'not measured yet'}."


def _within(value: Summary, bounds: Bounds) -> Summary:
    """A mean whose interval keeps to what is possible: Student's, of few values, goes beyond it."""
    return replace(value, low=max(value.low, bounds.low), high=min(value.high, bounds.high))


def _gains(row: Scores, random: Scores) -> list[float]:
    return [score - other for score, other in zip(faithfulness(row), faithfulness(random), strict=True)]
