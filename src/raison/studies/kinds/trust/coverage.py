"""Whether a study measures what its claims are about: found before it runs, and not by a claim without records."""

from collections.abc import Iterator, Sequence

from raison.studies.kinds.trust.results import TrustClaim
from raison.trust.results import ATTACKED_BY, TrustRun
from raison.trust.tables import EFFECTS


def unmeasured(claims: Sequence[TrustClaim], runs: Sequence[TrustRun]) -> Iterator[str]:
    """A line for each claim that no run of the study can decide, with the reason of the first run that it covers."""
    for number, claim in enumerate(claims, start=1):
        covered = [run for run in runs if claim.run in (None, run.name)]
        reasons = [_lacking(claim, run) for run in covered]
        if reasons and all(reasons):
            yield f"[[claims]] number {number}: {reasons[0]}."


def _lacking(claim: TrustClaim, run: TrustRun) -> str:
    """What a run does not measure of a claim; empty if it measures all."""
    sides = [(claim.row, claim)]
    if isinstance(claim.than, str):
        sides.append((claim.than or claim.row, claim.other))
    lacking = _not_attacked if claim.measure in EFFECTS else _not_randomised
    return next(filter(None, (lacking(method, side, run) for method, side in sides)), "")


def _not_attacked(method: str, claim: TrustClaim, run: TrustRun) -> str:
    variants, head = run.variants, run.header.attacks
    if claim.variant not in variants:
        offered = ", ".join(f"{one.attack} ({one.objective})" for one in variants)
        return f"the study has no attack {claim.variant.attack} ({claim.variant.objective}); it has {offered}"
    if method in variants[claim.variant] or head is None:
        return ""
    # The control of random changes leaves out the same methods as its attack.
    kind = "substitution" if claim.attack == "substitution" else "embedding"
    return f"{method} is not attacked by {ATTACKED_BY[kind]} ({head.left_out[kind].get(method, 'it is not listed')})"


def _not_randomised(method: str, claim: TrustClaim, run: TrustRun) -> str:
    head = run.header.randomisation
    if claim.order not in run.orders or head is None:
        return f"the study has no order {claim.order}; it has {', '.join(run.orders)}"
    if isinstance(claim.blocks, int) and claim.blocks > run.blocks:
        return f"blocks is {claim.blocks}, and {run.header.model} has {run.blocks}"
    if method not in head.methods:
        return f"{method} is not randomised ({head.left_out.get(method, 'it is not listed')})"
    return ""
