"""Evidence about methods from the committed records: the numbers behind method="auto"."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CheapMethod:
    """A method of a few passes that is as faithful as kernel_shap with up to `passes`, on texts with at least `units`
    units.

    Shown on words and tokens of texts that models of this architecture classify. `gain` is the mean difference of
    AOPC comprehensiveness minus AOPC sufficiency, with its 95 % interval.
    """

    architecture: str
    method: str
    units: int
    passes: int
    gain: float
    low: float
    high: float
    texts: int
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Estimator:
    """The call of kernel_shap with the smallest error at a number of passes."""

    passes: int
    method: str


@dataclass(frozen=True, slots=True)
class FewPasses:
    """With at least `units` units for `passes` passes, coarse_to_fine is more faithful than kernel_shap.

    `gaps` are the mean differences at this ratio and at those above it, in AOPC comprehensiveness minus sufficiency.
    """

    units: int
    passes: int
    gaps: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SelectionEvidence:
    """evidence.json, which `python docs/evidence.py` writes from the records."""

    cheap_methods: tuple[CheapMethod, ...]
    """The largest gain first."""
    estimators: tuple[Estimator, ...]
    """By passes, the fewest first."""
    few_passes: FewPasses

    def estimator(self, passes: int) -> Estimator:
        """The estimator for the largest tabulated number of passes up to `passes`, or for the smallest one if all are
        larger."""
        return [*self.estimators[:1], *(known for known in self.estimators if known.passes <= passes)][-1]


@cache
def evidence() -> SelectionEvidence:
    """The numbers as committed."""
    content = json.loads(Path(__file__).with_name("evidence.json").read_text(encoding="utf-8"))
    return SelectionEvidence(
        tuple(CheapMethod(**entry | {"runs": tuple(entry["runs"])}) for entry in content["cheap_methods"]),
        tuple(Estimator(**entry) for entry in content["estimators"]),
        FewPasses(**content["few_passes"] | {"gaps": tuple(content["few_passes"]["gaps"])}),
    )
