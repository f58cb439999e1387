"""The file of a study of trust: do explanations depend on the model's parameters, and do they hold under attack?

    schema = 1
    kind = "trust"
    title = "..."
    methods = ["saliency", "integrated_gradients(steps=20)"]
    [settings]
    unit = "token"
    [models.sst2]
    name = "demo/sst2"
    [data.sst2]
    source = "sst2"
    [randomisation]
    texts = 50
    orders = ["cascading", "independent"]
    [attacks]
    texts = 16
    objectives = ["unconstrained", "constrained"]
    substitution = { swaps = 3 }
    [figure]
    x = "parameters"
    [[claims]]
    says = "after the first block nothing is left of the saliency's order"
    measure = "spearman"
    order = "cascading"
    blocks = 1
    below = "saliency"
    than = 0.2

The first `texts` texts of each data set are used. Models, data and runs are as in comparisons; the explained class is
the predicted one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

from raison.core.registry import label_of
from raison.core.settings.fields import Setting
from raison.core.settings.tables import FLAT, REST, TableReading, read
from raison.explaining.settings import Settings
from raison.methods import CATALOGUE
from raison.studies import parts
from raison.studies.entries import OF_RUNS, PREDICTED, About, Grid, GridRun
from raison.studies.file import MistakesError, entries_of
from raison.studies.kinds.trust.results import AREA, CLAIMED, TrustClaim
from raison.studies.settings import decided
from raison.trust import implementation
from raison.trust.operations import TrustOperations
from raison.trust.records import AttackObjective
from raison.trust.tables import EFFECTS
from raison.trust.trial import AttacksAsked, RandomisationAsked, TrustTrial

_OBJECTIVES: tuple[AttackObjective, ...] = get_args(AttackObjective)
_SEED = {"seed": "seed applies to the whole study: write it under [settings]."}
_ONE = _SEED | {"objective": "this key is a list here: write objectives = [...]."}
Texts = Annotated[int, Setting(least=1)]


@dataclass(frozen=True, slots=True)
class RandomisationTable:
    """The table [randomisation]; the other settings are those of raison.trust.randomisation.Randomisation."""

    settings: Annotated[Mapping[str, Any], REST]
    texts: Texts = 50


@dataclass(frozen=True, slots=True)
class AttacksTable:
    """The table [attacks]; the other settings are those of raison.trust.attack_settings.EmbeddingAttack.

    `substitution` has the settings of raison.trust.substitution.Substitution.
    """

    settings: Annotated[Mapping[str, Any], REST]
    texts: Texts = 16
    objectives: tuple[str, ...] = _OBJECTIVES
    substitution: Annotated[Mapping[str, Any] | bool, Setting(words="a table, or false")] = False


@dataclass(frozen=True, slots=True)
class TrustFile:
    """The file. Numbers of texts are the thesis's."""

    about: Annotated[About, FLAT]
    grid: Annotated[Grid, FLAT]
    methods: tuple[str, ...]
    settings: Annotated[Settings, TableReading(without=PREDICTED)] = Settings()  # noqa: RUF009
    randomisation: RandomisationTable | None = None
    attacks: AttacksTable | None = None
    claims: Annotated[tuple[TrustClaim, ...], OF_RUNS] = ()


@dataclass(frozen=True, slots=True)
class TrustSpec:
    """A file without mistakes. `methods` and `claims` are written as the records do."""

    methods: tuple[str, ...]
    settings: Settings
    grid: Grid
    randomisation: RandomisationAsked | None
    attacks: AttacksAsked | None
    claims: tuple[TrustClaim, ...]

    def trial(self, run: GridRun) -> TrustTrial:
        """The request of one run."""
        unit = self.grid.data[run.data].unit or self.settings.unit
        removal = self.grid.models[run.model].removal or self.settings.removal
        settings = replace(self.settings, unit=unit, removal=removal)
        return TrustTrial(self.methods, settings, self.randomisation, self.attacks)

    @property
    def texts(self) -> int:
        """The maximum number of texts needed from a data set."""
        return TrustTrial(self.methods, self.settings, self.randomisation, self.attacks).texts


def tools() -> TrustOperations:
    """The work of raison.trust."""
    return implementation.operations()


def parse(table: Mapping[str, Any], place: Path, operations: TrustOperations) -> TrustSpec:
    """A parsed file in the folder `place`. Raises MistakesError with every mistake in it."""
    file, mistakes = entries_of(TrustFile, table)
    labels, wrong = parts.labels_in(file.methods, "methods", CATALOGUE, empty=parts.unread(table, "methods"))
    mistakes += parts.settings_mistakes(file.settings) + wrong + parts.grid_mistakes(file.grid, file.methods)
    if not {"randomisation", "attacks"} & set(table):
        mistakes.append("the study: it is empty; add a table [randomisation], [attacks], or both.")
    randomisation, wrong = _randomisation(file, operations)
    mistakes += wrong
    attacks, wrong = _attacks(file, operations)
    mistakes += wrong
    names = {"method": labels or None, "measure": CLAIMED, "run": {run.name for run in file.grid.wanted} or None}
    known = parts.ClaimNames(names, {"method": canonical}, {"method": "methods"})
    for where, claim in parts.read_claims(file.claims, mistakes):
        mistakes += _claim(claim, where, known, {*table})
    if mistakes:
        raise MistakesError(list(dict.fromkeys(mistakes)))
    return TrustSpec(
        methods=tuple(canonical(method) for method in file.methods),
        settings=file.settings,
        grid=parts.grid_beside(place, file.grid),
        randomisation=randomisation,
        attacks=attacks,
        claims=tuple(parts.claim_of(claim, canonical) for claim in file.claims),
    )


def canonical(method: str) -> str:
    """A method as the records write it: without settings that are defaults. Raises InputError."""
    return label_of(CATALOGUE.create(method))


def _randomisation(file: TrustFile, operations: TrustOperations) -> tuple[RandomisationAsked | None, list[str]]:
    if (table := file.randomisation) is None:
        return None, []
    record, where = operations.settings["randomisation"], "[randomisation]"
    plan: Any
    plan, mistakes = read(record, table.settings, where, without=_SEED, beside=("texts",))
    return RandomisationAsked(table.texts, plan if mistakes else decided(plan, file.settings.seed)), mistakes


def _attacks(file: TrustFile, operations: TrustOperations) -> tuple[AttacksAsked | None, list[str]]:
    if (table := file.attacks) is None:
        return None, []
    where, beside = "[attacks]", ("texts", "objectives", "substitution")
    attack: Any
    attack, mistakes = read(operations.settings["embedding"], table.settings, where, without=_ONE, beside=beside)
    mistakes += [line for name in table.objectives for line in parts.unknown(where, "objective", name, _OBJECTIVES)]
    mistakes += parts.twice(f"{where}: objectives", table.objectives)
    substitution: Any = None
    if isinstance(table.substitution, Mapping):
        record, inner = operations.settings["substitution"], "[attacks.substitution]"
        substitution, wrong = read(record, table.substitution, inner, without=_SEED)
        substitution = substitution if wrong else decided(substitution, file.settings.seed)
        mistakes += wrong
    elif table.substitution:
        mistakes.append(f"{where}: substitution is true; give a table, or false.")
    elif not table.objectives:
        mistakes.append(f"{where}: it has no objective and no substitution: add one, or leave the table out.")
    if mistakes:
        return None, mistakes
    attack = decided(attack, file.settings.seed)
    plans = tuple(replace(attack, objective=objective) for objective in table.objectives)
    return AttacksAsked(table.texts, plans, substitution), mistakes


def _claim(claim: TrustClaim, where: str, known: parts.ClaimNames, tables: set[str]) -> list[str]:
    mistakes = claim.mistakes(where)
    for label in claim.labels:
        mistakes += known.name(where, "method", label)
    mistakes += known.name(where, "measure", claim.measure) + known.name(where, "run", claim.run)
    return mistakes or _sense(claim, where, tables)


def _sense(claim: TrustClaim, where: str, tables: set[str]) -> list[str]:
    """The entries that are missing or superfluous for the measure of a claim whose entries are valid by themselves."""
    stated, measure = set(claim.to_dict()), claim.measure
    attacking = measure in EFFECTS
    part = "attacks" if attacking else "randomisation"
    if part not in tables:
        return [f"{where}: {measure} needs the table [{part}], and the study has none."]
    attacks = {claim.attack, claim.other.attack}
    # Substituted words have one objective.
    attack = ("attack",) if attacks == {"substitution"} else ("attack", "objective")
    wanted = attack if attacking else ("order",) if measure.endswith(AREA) else ("order", "blocks")
    others = {"than_attack", "than_objective"}
    every = {"order", "blocks", "attack", "objective", *others}
    allowed = {*wanted, *(("objective", *others) if attacking else ())}
    mistakes = [f"{where}: {measure} needs {key}; add it." for key in wanted if key not in stated]
    mistakes += [f"{where}: {key} does not belong to {measure}." for key in sorted((every - allowed) & stated)]
    if claim.than == "" and not others & stated:
        beside = ", or than_attack or than_objective for the same method" if attacking else ""
        mistakes.append(f"{where}: than is missing; give a method or a number{beside}.")
    too_much = others & stated
    if isinstance(claim.than, int | float) and too_much:
        mistakes.append(f"{where}: it compares with a number: leave {' and '.join(sorted(too_much))} out.")
    return mistakes or _itself(claim, where)


def _itself(claim: TrustClaim, where: str) -> list[str]:
    same = claim.than == "" or (isinstance(claim.than, str) and canonical(claim.than) == canonical(claim.row))
    differing = claim.attack is not None and claim.other.variant != claim.variant
    return [f"{where}: it compares {claim.row} with itself."] if same and not differing else []
