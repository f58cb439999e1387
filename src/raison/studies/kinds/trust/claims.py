"""What a study of trust states, held against its records."""

from collections.abc import Mapping
from typing import Any

from raison.runs.judging import Learned, Side, Verdict, corrected, judged
from raison.runs.learned import read_labels
from raison.trust.results import TrustRun, TrustRuns, Variant
from raison.trust.tables import EFFECTS, MEASURES, Values, against, areas, at_blocks, effects, paired, summary

AREA = "_area"
"""What follows a measure of similarity where the claim is about its area."""
ALL = "all"
"""The value of `blocks` for as many as the model has."""
CLAIMED = (*MEASURES, *(f"{measure}{AREA}" for measure in MEASURES), *EFFECTS)


def trust_verdicts(study: TrustRuns) -> list[Verdict]:
    """Every claim on every run that it is about, by the rule of raison.runs.judging.

    A claim that says `by` how much is held against the other row's value plus that number (of a claim that a row is
    below it: minus).
    """
    labels = read_labels(study.folder)
    return corrected(
        [
            _verdict(claim, run, labels.of_run(run.name, study.model(run), run.header["data"]))
            for claim in study.header["claims"]
            for run in study.runs.values()
            if claim.get("run", run.name) == run.name
        ]
    )


def _verdict(claim: Mapping[str, Any], run: TrustRun, learned: Learned) -> Verdict:
    side: Side = "above" if "above" in claim else "below"
    than = claim.get("than", claim[side])
    other = {**claim, **{key: claim[f"than_{key}"] for key in ("attack", "objective") if f"than_{key}" in claim}}
    first = _values(run, claim[side], claim)
    mean = summary(first.values()).mean
    about = (claim["says"], run.name, _told(claim, run), _row(claim[side], claim), side)
    if isinstance(than, int | float):
        gap, number = against(first, float(than)), float(than)
        return judged(Verdict(*about, number, "missing", mean, number), gap, learned)
    second, shift = _values(run, than, other), float(claim.get("by", 0.0)) * (1 if side == "above" else -1)
    # Held against the other row's value plus a number.
    moved = {text: value + shift for text, value in second.items()}
    row = f"{_row(than, other)} {shift:+g}" if shift else _row(than, other)
    return judged(Verdict(*about, row, "missing", mean, summary(moved.values()).mean), paired(first, moved), learned)


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
