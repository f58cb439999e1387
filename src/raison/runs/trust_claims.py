"""What a study of trust states, held against its records."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from raison.numerics.paired import Difference
from raison.runs.claims import Finding, Side, Verdict
from raison.runs.trust_study import TrustRun, TrustRuns, Variant
from raison.runs.trust_tables import EFFECTS, MEASURES, Values, against, areas, at_blocks, effects, paired, summary

AREA = "_area"
"""What follows a measure of similarity where the claim is about its area."""
ALL = "all"
"""The value of `blocks` for as many as the model has."""
CLAIMED = (*MEASURES, *(f"{measure}{AREA}" for measure in MEASURES), *EFFECTS)


def trust_verdicts(study: TrustRuns) -> list[Verdict]:
    """Every claim on every run that it is about.

    As for other studies: a claim holds where the 95 % interval of the paired difference over texts lies wholly on its
    side of zero, fails where it lies wholly on the other one, and is undecided else. A claim that says `by` how much is
    held against the other row's value plus that number (of a claim that a row is below it: minus).
    """
    return [
        _verdict(claim, run)
        for claim in study.header["claims"]
        for run in study.runs.values()
        if claim.get("run", run.name) == run.name
    ]


def _verdict(claim: Mapping[str, Any], run: TrustRun) -> Verdict:
    side: Side = "above" if "above" in claim else "below"
    than = claim.get("than", claim[side])
    other = {**claim, **{key: claim[f"than_{key}"] for key in ("attack", "objective") if f"than_{key}" in claim}}
    first = _values(run, claim[side], claim)
    mean = summary(first.values()).mean
    about = (claim["says"], run.name, _told(claim, run), _row(claim[side], claim), side)
    if isinstance(than, int | float):
        gap, beside, than_mean = against(first, float(than)), float(than), float(than)
        return _judged(Verdict(*about, beside, "missing", mean, than_mean), gap)
    second, shift = _values(run, than, other), float(claim.get("by", 0.0)) * (1 if side == "above" else -1)
    gap, row = paired(first, second), _row(than, other)
    than_mean = summary(second.values()).mean
    if not shift:
        return _judged(Verdict(*about, row, "missing", mean, than_mean), gap)
    # Held against the other row's value plus a number: exchanging the two would say nothing.
    moved = Difference(gap.mean - shift, gap.low - shift, gap.high - shift, math.nan, gap.count)
    return _judged(Verdict(*about, f"{row} {shift:+g}", "missing", mean, than_mean + shift), moved)


def _judged(verdict: Verdict, gap: Difference) -> Verdict:
    return replace(verdict, finding=_finding(gap, verdict.side), difference=gap) if gap.count else verdict


def _values(run: TrustRun, method: str, claim: Mapping[str, Any]) -> Values:
    measure = claim["measure"]
    if measure in EFFECTS:
        return effects(run, method, Variant(claim["attack"], claim["objective"]), measure)
    if measure.endswith(AREA):
        return areas(run, method, claim["order"], measure.removesuffix(AREA))
    return at_blocks(run, method, claim["order"], _blocks(claim, run), measure)


def _blocks(claim: Mapping[str, Any], run: TrustRun) -> int:
    return run.blocks if claim["blocks"] == ALL else int(claim["blocks"])


def _told(claim: Mapping[str, Any], run: TrustRun) -> str:
    """What is measured, in words."""
    measure = str(claim["measure"]).replace("_", " ")
    if claim["measure"] in EFFECTS:
        return measure
    if "blocks" not in claim:
        return f"{measure}, {claim['order']}"
    count = _blocks(claim, run)
    if claim["order"] == "independent":
        return f"{measure}, block {count} from the last"
    return f"{measure}, the last {count} of {run.blocks} blocks"


def _row(method: str, claim: Mapping[str, Any]) -> str:
    if claim["measure"] not in EFFECTS:
        return method
    attack = "" if claim["attack"] == "embedding" else f"{claim['attack']}, "
    return f"{method} ({attack}{claim['objective']})"


def _finding(gap: Difference, side: Side) -> Finding:
    low, high = (gap.low, gap.high) if side == "above" else (-gap.high, -gap.low)
    # An interval that is NaN is on no side.
    return "holds" if low > 0 else "fails" if high < 0 else "undecided"
