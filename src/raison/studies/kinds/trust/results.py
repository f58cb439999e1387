"""The folder of a study of trust: how explanations change with a model's parameters, and under attack.

trust.json   the common header (raison.studies.folder), models, runs, methods, exclusions with reasons
RUN/         similarities.jsonl, attacks.jsonl, substitutions.jsonl (see raison.trust.results)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from raison.core.errors import DataError
from raison.core.settings.fields import Setting
from raison.jobs.folder import TRUST
from raison.runs.headers import ModelHead
from raison.runs.task_accuracy import Labels, read_labels
from raison.studies.claims import PairedSample
from raison.studies.folder import Claim, StudyHead, WrittenStudy, check_claimed, left_out, read_header
from raison.trust.records import Attack, AttackObjective, Order
from raison.trust.results import AttackVariant, TrustHead, TrustRun, read_run
from raison.trust.tables import EFFECTS, MEASURES, Values, areas, at_blocks, effects, summary

FOLDERS = (TRUST,)
DIGITS = 7
"""Decimal places of a probability that single precision holds."""
AREA = "_area"
"""The suffix of a measure of similarity if the claim is about its area."""
CLAIMED = (*MEASURES, *(f"{measure}{AREA}" for measure in MEASURES), *EFFECTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustClaim(Claim):
    """A claim by a measure, of randomised blocks or of an attack; on one run or on all.

    Without `than` the other row is the same method under another attack.
    """

    measure: str
    than: Annotated[str | float, Setting(words="a method or a number")] = ""
    order: Order | None = None
    blocks: Annotated[int | Literal["all"] | None, Setting(words='a whole number of at least 1, or "all"', least=1)] = (
        None
    )
    attack: Attack | None = None
    objective: AttackObjective | None = None
    than_attack: Attack | None = None
    than_objective: AttackObjective | None = None
    run: str | None = None

    @property
    def measured(self) -> str:
        """The measure."""
        return self.measure

    @property
    def is_whole(self) -> bool:
        """Whether it says what its measure needs: the attack with its objective, or the order of randomisation."""
        if self.measure not in EFFECTS:
            return self.order is not None
        sides = (self, self.other)
        return all(one.attack == "substitution" or (one.attack and one.objective) for one in sides)

    @property
    def variant(self) -> AttackVariant:
        """The attack on the row."""
        assert self.attack is not None, "a claim about an attack names it"
        # Substituted words have one objective, which a claim need not name.
        objective = "constrained" if self.attack == "substitution" else self.objective
        assert objective is not None, "a claim about an attack names its objective"
        return AttackVariant(self.attack, objective)

    @property
    def other(self) -> "TrustClaim":
        """The same claim for the other row, under its attack."""
        return replace(self, attack=self.than_attack or self.attack, objective=self.than_objective or self.objective)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustStudyHead(StudyHead):
    """Methods as the file names them, facts about the models by their keys, and the request of each run."""

    methods: tuple[str, ...]
    models: Mapping[str, ModelHead]
    runs: tuple[TrustHead, ...]
    claims: tuple[TrustClaim, ...] = ()

    def __post_init__(self) -> None:
        if lacking := {run.model for run in self.runs} - self.models.keys():
            raise DataError(f"it does not cover the models {', '.join(sorted(lacking)):.80}.")


@dataclass(frozen=True, slots=True)
class TrustRuns(WrittenStudy):
    """What a study of trust has written so far."""

    header: TrustStudyHead
    runs: Mapping[str, TrustRun]
    labels: Labels

    @property
    def dropped(self) -> int:
        """Broken lines of all runs."""
        return sum(run.dropped for run in self.runs.values())

    @property
    def progress(self) -> tuple[int, int]:
        """The number of similarities and attacks so far, and that of the finished study."""
        wanted = sum(run.wanted for run in self.runs.values())
        return wanted - sum(run.missing for run in self.runs.values()), wanted

    def unfinished(self) -> Iterator[str]:
        """What is missing or was left out, for each run."""
        for run in self.runs.values():
            if run.missing:
                done = f"{run.wanted - run.missing:,} of {run.wanted:,}"
                yield f"{run.name}: unfinished, {done} records. Means are over these; resume the study for the rest."
            if run.dropped and run.missing:
                yield f"{run.name}: {left_out(run.dropped)}"


def read(folder: Path) -> TrustRuns:
    """What a study of trust has written so far. Raises DataError if the folder holds none, or a newer version's."""
    header, text = read_header(folder, TRUST, TrustStudyHead)
    check_claimed(folder, "measure", (claim.measure for claim in header.claims), CLAIMED)
    for claim in header.claims:
        if not claim.is_whole:
            raise DataError(
                f"{folder} has a claim about {claim.measure} without the attack, or the order, that it needs."
            )
    runs = {entry.name: read_run(folder, entry) for entry in header.runs}
    return TrustRuns(folder, header, text, runs, read_labels(folder))


def places(results: TrustRuns, claim: TrustClaim) -> list[str]:
    """The run that a claim names, or all."""
    return [name for name in results.runs if claim.run in (None, name)]


def sample(results: TrustRuns, claim: TrustClaim, place: str) -> PairedSample:
    """Values of single texts, draws averaged first.

    Changes of a probability are rounded to the digits that single precision holds.
    """
    run = results.runs[place]
    method, than = claim.row, claim.row if claim.than == "" else claim.than
    first = _values(run, method, claim)
    about = (_told(claim, run), _row(method, claim))
    learned = results.labels.of_run(run.name, results.header.models[run.header.model], run.header.data)
    mean = summary(first.values()).mean
    if isinstance(than, int | float):
        number = float(than)
        return PairedSample(*about, number, _column(first.values()), number, mean, number, learned)
    other = claim.other
    second = _values(run, than, other)
    shared = sorted(first.keys() & second.keys())
    one, two = (_column([values[text] for text in shared]) for values in (first, second))
    return PairedSample(*about, _row(than, other), one, two, mean, summary(second.values()).mean, learned)


def _column(values: Any) -> np.ndarray:
    return np.array(list(values), dtype=np.float64).reshape(-1, 1)


def _values(run: TrustRun, method: str, claim: TrustClaim) -> Values:
    name = claim.measure
    for effect in EFFECTS:
        if name == effect:
            values = effects(run, method, claim.variant, effect)
            if "probability" not in name:
                return values
            return {text: round(value, DIGITS) for text, value in values.items()}
    (measure,) = (measure for measure in MEASURES if measure == name.removesuffix(AREA))
    assert claim.order is not None, "a claim about randomised blocks names their order"
    if claim.blocks is None:
        return areas(run, method, claim.order, measure)
    return at_blocks(run, method, claim.order, _blocks(claim, run), measure)


def _blocks(claim: TrustClaim, run: TrustRun) -> int:
    return claim.blocks if isinstance(claim.blocks, int) else run.blocks


def _told(claim: TrustClaim, run: TrustRun) -> str:
    """A description of the measure in words."""
    measure = claim.measure.replace("_", " ")
    if claim.measure in EFFECTS:
        return measure
    if claim.blocks is None:
        return f"{measure}, {claim.order}"
    count = _blocks(claim, run)
    if claim.order == "independent":
        return f"{measure}, block {count} from the last"
    return f"{measure}, the last {count} of {run.blocks} blocks"


def _row(method: str, claim: TrustClaim) -> str:
    if claim.measure not in EFFECTS:
        return method
    attack = "" if claim.attack == "embedding" else f"{claim.attack}, "
    return f"{method} ({attack}{claim.variant.objective})"
