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

The first `texts` texts of each data set are used. Models, data and runs are those of comparisons; what is explained is
the class that the model predicts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from raison.core.errors import RaisonError, UnknownNameError
from raison.core.registry import label_of
from raison.explaining.attribution import Settings
from raison.methods import CATALOGUE
from raison.studies import parts, schema
from raison.studies.file import MistakesError, entries_of
from raison.studies.folder import Claim
from raison.studies.kinds.trust.results import ALL, AREA, CLAIMED
from raison.studies.parts import Grid, RunKey
from raison.studies.schema import COUNT, NUMBER, TEXT, TEXTS, Key, Keys, ValueKind, fitting
from raison.studies.settings import keys_of, make, mistakes_in
from raison.trust import calls
from raison.trust.records import Attack, Objective, Order
from raison.trust.tables import EFFECTS
from raison.trust.trial import AttacksAsked, RandomisationAsked, Trial
from raison.trust.works import Works

RANDOMISED, ATTACKED = 50, 16
"""Texts of the thesis."""
_ORDERS, _ATTACKS, _OBJECTIVES = get_args(Order), get_args(Attack), get_args(Objective)
_BLOCKS = ValueKind(f'a whole number from 1 on, or "{ALL}"', lambda value: value == ALL or COUNT.fits(value))
_TABLE_OR_NO = ValueKind("a table, or false", lambda value: value is False or isinstance(value, dict))

KEYS: Keys = {
    "methods": Key(TEXTS, True),
    "settings": Key(schema.TABLE),
    "models": Key(schema.TABLE, True),
    "data": Key(schema.TABLE, True),
    "runs": Key(schema.TABLES),
    "randomisation": Key(schema.TABLE),
    "attacks": Key(schema.TABLE),
    "figure": Key(schema.TABLE),
}
SETTINGS: Keys = schema.keys_of(Settings, without=("target", "precision"))
RANDOMISATION: Keys = {"texts": Key(COUNT)}
"""Beside the settings of raison.trust.randomisation.Randomisation."""
ATTACKS: Keys = {
    "texts": Key(COUNT),
    "objectives": Key(TEXTS),
    "substitution": Key(_TABLE_OR_NO),
}
"""Beside the settings of raison.trust.attacks.EmbeddingAttack."""
CLAIM: Keys = {
    "says": Key(TEXT, True),
    "measure": Key(TEXT, True),
    "above": Key(TEXT),
    "below": Key(TEXT),
    "than": Key(schema.THAN),
    "by": Key(NUMBER),
    "order": Key(TEXT),
    "blocks": Key(_BLOCKS),
    "attack": Key(TEXT),
    "objective": Key(TEXT),
    "than_attack": Key(TEXT),
    "than_objective": Key(TEXT),
    "run": Key(TEXT),
}


@dataclass(frozen=True, slots=True)
class Trust:
    """A file without mistakes. `methods` and `claims` are written as the records do."""

    methods: tuple[str, ...]
    settings: Settings
    grid: Grid
    randomisation: RandomisationAsked | None
    attacks: AttacksAsked | None
    claims: tuple[Claim, ...]

    def trial(self, run: RunKey) -> Trial:
        """What is asked of one run."""
        model, data = run
        unit = self.grid.data[data].unit or self.settings.unit
        removal = self.grid.models[model].removal or self.settings.removal
        settings = replace(self.settings, unit=unit, removal=removal)
        return Trial(self.methods, settings, self.randomisation, self.attacks)

    @property
    def texts(self) -> int:
        """The most texts that anything here needs of a data set."""
        return Trial(self.methods, self.settings, self.randomisation, self.attacks).texts


def tools() -> Works:
    """The work of raison.trust."""
    return calls.works()


def parse(table: Mapping[str, Any], place: Path, works: Works) -> Trust:
    """A parsed file in the folder `place`. Raises MistakesError with every mistake in it."""
    study, mistakes = entries_of(table, KEYS)
    settings, wrong = fitting(study.get("settings", {}), SETTINGS, "[settings]")
    mistakes += wrong + parts.settings_mistakes(settings)
    if "methods" in study:
        mistakes += parts.labels_in(study["methods"], "methods", CATALOGUE)[1]
    runs, wrong = parts.grid_mistakes(study)
    mistakes += wrong
    asked = tuple(part for part in ("randomisation", "attacks") if part in study)
    if not {"randomisation", "attacks"} & set(table):
        mistakes.append("the study: it asks for nothing; add a table [randomisation], or [attacks], or both.")
    if "randomisation" in study:
        mistakes += _randomisation_mistakes(study["randomisation"], works)
    if "attacks" in study:
        mistakes += _attacks_mistakes(study["attacks"], works)
    known = _Known(_methods(study), runs, asked)
    for number, claim in enumerate(study.get("claims", ()), start=1):
        mistakes += _claim(claim, f"[[claims]] number {number}", known)
    if mistakes:
        raise MistakesError(list(dict.fromkeys(mistakes)))
    chosen = Settings(**table.get("settings", {}))
    return Trust(
        methods=tuple(canonical(method) for method in table["methods"]),
        settings=chosen,
        grid=parts.grid_of(table, place),
        randomisation=_randomisation(table, works, chosen.seed),
        attacks=_attacks(table, works, chosen.seed),
        claims=tuple(parts.claim_of(entry, canonical) for entry in table.get("claims", ())),
    )


def _randomisation(table: Mapping[str, Any], works: Works, seed: int) -> RandomisationAsked | None:
    asked = table.get("randomisation")
    if asked is None:
        return None
    plan = make(works.settings["randomisation"], rest(asked, RANDOMISATION), seed)
    return RandomisationAsked(asked.get("texts", RANDOMISED), plan)


def _attacks(table: Mapping[str, Any], works: Works, seed: int) -> AttacksAsked | None:
    asked = table.get("attacks")
    if asked is None:
        return None
    values = rest(asked, ATTACKS)
    plans = tuple(
        make(works.settings["embedding"], {**values, "objective": objective}, seed)
        for objective in asked.get("objectives", get_args(Objective))
    )
    wanted = asked.get("substitution", False)
    substitution = None if wanted is False else make(works.settings["substitution"], wanted, seed)
    return AttacksAsked(asked.get("texts", ATTACKED), plans, substitution)


@dataclass(frozen=True, slots=True)
class _Known:
    """What a claim may name; None where mistakes elsewhere leave it unknown."""

    methods: set[str] | None
    runs: set[str] | None
    parts: tuple[str, ...]


def canonical(method: str) -> str:
    """A method as the records write it: without settings that are defaults. Raises InputError."""
    return label_of(CATALOGUE.create(method))


def rest(table: Mapping[str, Any], keys: Keys) -> dict[str, Any]:
    """A table's entries that are settings of the work, not of the study."""
    return {key: value for key, value in table.items() if key not in keys}


def _methods(study: Mapping[str, Any]) -> set[str] | None:
    try:
        return {canonical(method) for method in study["methods"]}
    except (RaisonError, KeyError):
        return None


def _randomisation_mistakes(table: Mapping[str, Any], works: Works) -> list[str]:
    _, mistakes = _own(table, RANDOMISATION, "[randomisation]")
    settings, values = works.settings["randomisation"], rest(table, RANDOMISATION)
    return mistakes + _settings(settings, values, "[randomisation]", RANDOMISATION)


def _attacks_mistakes(table: Mapping[str, Any], works: Works) -> list[str]:
    where = "[attacks]"
    stated, mistakes = _own(table, ATTACKS, where)
    values = rest(table, ATTACKS)
    if "objective" in values:
        return [*mistakes, f"{where}: objective is one of several here: write objectives = [...]."]
    mistakes += _settings(works.settings["embedding"], values, where, ATTACKS)
    objectives = stated.get("objectives", list(_OBJECTIVES))
    for objective in objectives:
        if objective not in _OBJECTIVES:
            mistakes.append(f"{where}: {UnknownNameError('objective', objective, _OBJECTIVES)}")
    if len(set(objectives)) < len(objectives):
        mistakes.append(f"{where}: objectives names one twice.")
    substitution = stated.get("substitution") or {}
    if not objectives and not stated.get("substitution"):
        mistakes.append(f"{where}: no objective and no substitution: name one, or leave the table out.")
    return mistakes + _settings(works.settings["substitution"], substitution, f"{where} substitution", {})


def _own(table: Mapping[str, Any], keys: Keys, where: str) -> tuple[dict[str, Any], list[str]]:
    """The study's own entries of a table that holds the work's settings beside."""
    return fitting({key: value for key, value in table.items() if key in keys}, keys, where)


def _settings(settings: type, values: Mapping[str, Any], where: str, keys: Keys) -> list[str]:
    if "seed" in values:
        return [f"{where}: seed is the whole study's: write it under [settings]."]
    known = [key for key in (*keys_of(settings), *keys) if key != "objective"]
    unknown = [f"{where}: {UnknownNameError('key', key, known)}" for key in values if key not in known]
    return unknown or mistakes_in(settings, values, where)


def _claim(table: Mapping[str, Any], where: str, known: _Known) -> list[str]:
    fit, mistakes = fitting(table, CLAIM, where)
    mistakes += parts.sides_mistakes(table, where)
    for label in parts.rows_named(fit):
        mistakes += _named(label, where, known)
    for name, keys, choices in (
        ("order", ("order",), _ORDERS),
        ("attack", ("attack", "than_attack"), _ATTACKS),
        ("objective", ("objective", "than_objective"), _OBJECTIVES),
        ("measure", ("measure",), CLAIMED),
    ):
        for value in (fit[key] for key in keys if key in fit):
            if value not in choices:
                mistakes.append(f"{where}: {UnknownNameError(name, value, choices)}")
    if "run" in fit and known.runs is not None and fit["run"] not in known.runs:
        mistakes.append(f"{where}: {UnknownNameError('run', fit['run'], known.runs)}")
    return mistakes or _sense(fit, where, known)


def _named(label: str, where: str, known: _Known) -> list[str]:
    try:
        name = canonical(label)
    except RaisonError as error:
        return [f"{where}: {error}"]
    if known.methods is not None and name not in known.methods:
        return [f"{where}: {UnknownNameError('method', label, known.methods)}"]
    return []


def _sense(claim: Mapping[str, Any], where: str, known: _Known) -> list[str]:
    """What is missing, or too much, for the measure of a claim whose entries are right by themselves."""
    attacking = claim["measure"] in EFFECTS
    part = "attacks" if attacking else "randomisation"
    if part not in known.parts:
        return [f"{where}: {claim['measure']} needs the table [{part}], and the study has none."]
    area = claim["measure"].endswith(AREA)
    wanted = ("attack", "objective") if attacking else ("order",) if area else ("order", "blocks")
    every = {"order", "blocks", "attack", "objective", "than_attack", "than_objective"}
    allowed = {*wanted, *(("than_attack", "than_objective") if attacking else ())}
    mistakes = [f"{where}: {claim['measure']} needs {key}; add it." for key in wanted if key not in claim]
    mistakes += [
        f"{where}: {key} does not belong to {claim['measure']}." for key in sorted((every - allowed) & set(claim))
    ]
    others = {"than_attack", "than_objective"} & set(claim)
    if "than" not in claim and not others:
        beside = ", or than_attack or than_objective for the same method" if attacking else ""
        mistakes.append(f"{where}: than is missing; give a method or a number{beside}.")
    others |= {"by"} & set(claim)
    if isinstance(claim.get("than"), int | float) and others:
        mistakes.append(f"{where}: it compares with a number: leave {' and '.join(sorted(others))} out.")
    return mistakes or _itself(claim, where)


def _itself(claim: Mapping[str, Any], where: str) -> list[str]:
    row, than = claim.get("above", claim.get("below")), claim.get("than")
    differing = any(claim.get(f"than_{key}", claim.get(key)) != claim.get(key) for key in ("attack", "objective"))
    same = than is None or (isinstance(than, str) and canonical(than) == canonical(str(row)))
    return [f"{where}: it compares {row} with itself."] if same and not differing else []
