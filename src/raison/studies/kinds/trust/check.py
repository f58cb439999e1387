"""Everything that is wrong with the file of a study of trust, before a model or a data set is touched."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from raison.core.errors import RaisonError, UnknownNameError
from raison.core.registry import label_of
from raison.methods import CATALOGUE
from raison.studies.kinds.comparison import check as studies
from raison.studies.kinds.trainings.recipes import keys_of, mistakes_in
from raison.studies.kinds.trust import keys as trust_shape
from raison.studies.kinds.trust.claims import AREA, CLAIMED
from raison.studies.schema import Keys, fitting
from raison.trust.records import Attack, Objective, Order
from raison.trust.results import KIND, SCHEMA
from raison.trust.tables import EFFECTS
from raison.trust.works import Works

_ORDERS, _ATTACKS, _OBJECTIVES = get_args(Order), get_args(Attack), get_args(Objective)
_SHARED = ("unit", "of", "removal", "truncate")
"""Settings that are checked in the words of other studies."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What a claim may name; None where mistakes elsewhere leave it unknown."""

    methods: set[str] | None
    runs: set[str] | None
    parts: tuple[str, ...]


def check(table: Mapping[str, Any], works: Works) -> list[str]:
    """One line for each mistake in a parsed file; none if it can be run as far as the file alone tells."""
    study, mistakes = fitting(table, trust_shape.STUDY, "the study")
    if study.get("schema", SCHEMA) != SCHEMA:
        return [f"the study: schema is {study['schema']}, and this version of raison reads {SCHEMA}."]
    settings, wrong = fitting(study.get("settings", {}), trust_shape.SETTINGS, "[settings]")
    mistakes += wrong + _as_other_studies(study, settings)
    parts = tuple(part for part in ("randomisation", "attacks") if part in study)
    if not parts and not {"randomisation", "attacks"} & set(table):
        mistakes.append("the study: it asks for nothing; add a table [randomisation], or [attacks], or both.")
    if "randomisation" in study:
        mistakes += _randomisation(study["randomisation"], works)
    if "attacks" in study:
        mistakes += _attacks(study["attacks"], works)
    known = _Known(_methods(study), _runs(study, mistakes), parts)
    for number, claim in enumerate(study.get("claims", ()), start=1):
        mistakes += _claim(claim, f"[[claims]] number {number}", known)
    return mistakes


def is_kind(table: Mapping[str, Any]) -> bool:
    """Whether a parsed file is one of a study of trust."""
    return table.get("kind") == KIND


def canonical(method: str) -> str:
    """A method as the records write it: without settings that are defaults. Raises InputError."""
    return label_of(CATALOGUE.create(method))


def rest(table: Mapping[str, Any], own: Keys) -> dict[str, Any]:
    """A table's entries that are settings of the work, not of the study."""
    return {key: value for key, value in table.items() if key not in own}


def _as_other_studies(study: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """What is wrong with methods, settings, models, data, runs and figure, in the words of other studies."""
    same = ("title", "methods", "models", "data", "runs", "figure")
    table = {key: study[key] for key in same if key in study}
    # What is missing or misshapen has been said; here something right stands for it.
    stands = {"title": "-", "methods": ["random"], "models": {"m": {"name": "-"}}, "data": {"d": {"source": "-"}}}
    shared = {key: settings[key] for key in _SHARED if key in settings}
    return studies.check({"schema": SCHEMA, "metrics": ["entropy"], "settings": shared, **stands, **table})


def _methods(study: Mapping[str, Any]) -> set[str] | None:
    try:
        return {canonical(method) for method in study["methods"]}
    except (RaisonError, KeyError):
        return None


def _runs(study: Mapping[str, Any], mistakes: list[str]) -> set[str] | None:
    if any(
        line.startswith(("[models", "[data", "[[runs", "the study: models", "the study: data")) for line in mistakes
    ):
        return None
    return {studies.run_name(*pair) for pair in studies.grid(study)} if {"models", "data"} <= study.keys() else None


def _randomisation(table: Mapping[str, Any], works: Works) -> list[str]:
    _, mistakes = _own(table, trust_shape.RANDOMISATION, "[randomisation]")
    settings, values = works.settings["randomisation"], rest(table, trust_shape.RANDOMISATION)
    return mistakes + _settings(settings, values, "[randomisation]", trust_shape.RANDOMISATION)


def _attacks(table: Mapping[str, Any], works: Works) -> list[str]:
    where = "[attacks]"
    own, mistakes = _own(table, trust_shape.ATTACKS, where)
    values = rest(table, trust_shape.ATTACKS)
    if "objective" in values:
        return [*mistakes, f"{where}: objective is one of several here: write objectives = [...]."]
    mistakes += _settings(works.settings["embedding"], values, where, trust_shape.ATTACKS)
    objectives = own.get("objectives", list(_OBJECTIVES))
    for objective in objectives:
        if objective not in _OBJECTIVES:
            mistakes.append(f"{where}: {UnknownNameError('objective', objective, _OBJECTIVES)}")
    if len(set(objectives)) < len(objectives):
        mistakes.append(f"{where}: objectives names one twice.")
    substitution = own.get("substitution") or {}
    if not objectives and not own.get("substitution"):
        mistakes.append(f"{where}: no objective and no substitution: name one, or leave the table out.")
    return mistakes + _settings(works.settings["substitution"], substitution, f"{where} substitution", {})


def _own(table: Mapping[str, Any], keys: Keys, where: str) -> tuple[dict[str, Any], list[str]]:
    """The study's own entries of a table that holds the work's settings beside."""
    return fitting({key: value for key, value in table.items() if key in keys}, keys, where)


def _settings(settings: type, values: Mapping[str, Any], where: str, own: Keys) -> list[str]:
    if "seed" in values:
        return [f"{where}: seed is the whole study's: write it under [settings]."]
    known = [key for key in (*keys_of(settings), *own) if key != "objective"]
    unknown = [f"{where}: {UnknownNameError('key', key, known)}" for key in values if key not in known]
    return unknown or mistakes_in(settings, values, where)


def _claim(table: Mapping[str, Any], where: str, known: _Known) -> list[str]:
    fit, mistakes = fitting(table, trust_shape.CLAIM, where)
    if ("above" in table) == ("below" in table):
        mistakes.append(f"{where}: give one of above and below.")
    for label in (fit[key] for key in ("above", "below", "than") if isinstance(fit.get(key), str)):
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
