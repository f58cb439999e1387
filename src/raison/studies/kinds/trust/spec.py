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

The first `texts` texts of each data set are used. Models, data and runs are those of comparisons
(raison.studies.kinds.comparison.spec); what is explained is the class that the model predicts. raison.studies.kinds
.trust.check has all keys.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from raison.attribution import Settings
from raison.core.errors import DataError
from raison.studies.kinds.comparison.check import grid, run_name
from raison.studies.kinds.comparison.results import digest_of
from raison.studies.kinds.comparison.spec import (
    Study,
    StudyData,
    StudyError,
    StudyModel,
    StudySettings,
    data_of,
    model_of,
    text_of,
)
from raison.studies.kinds.trainings.recipes import make
from raison.studies.kinds.trust import keys as trust_shape
from raison.studies.kinds.trust.check import canonical, check, is_kind, rest
from raison.trust.records import Objective
from raison.trust.works import Works

RANDOMISED, ATTACKED = 50, 16
"""Texts of the thesis."""


@dataclass(frozen=True, slots=True)
class RandomisationAsked:
    """`plan` is a raison.trust.randomisation.Randomisation."""

    texts: int
    plan: Any


@dataclass(frozen=True, slots=True)
class AttacksAsked:
    """`plans`: a raison.trust.attacks.EmbeddingAttack for each objective. `substitution` is None where not wanted."""

    texts: int
    plans: tuple[Any, ...]
    substitution: Any


@dataclass(frozen=True, slots=True)
class TrustStudy:
    """A file of a study of trust without mistakes. `methods` and `claims` are written as the records do."""

    path: Path
    text: str
    title: str
    methods: tuple[str, ...]
    settings: Settings
    models: Mapping[str, StudyModel]
    data: Mapping[str, StudyData]
    runs: tuple[tuple[str, str], ...]
    randomisation: RandomisationAsked | None
    attacks: AttacksAsked | None
    claims: tuple[Mapping[str, Any], ...]

    @property
    def digest(self) -> str:
        """The hash that names the file's content."""
        return digest_of(self.text)

    @property
    def name(self) -> str:
        """As for other studies."""
        return self.as_study.name

    @property
    def run_names(self) -> tuple[str, ...]:
        """The runs' folders."""
        return tuple(run_name(*run) for run in self.runs)

    def texts(self) -> int:
        """The most texts that anything here needs of a data set."""
        return max(part.texts for part in (self.randomisation, self.attacks) if part is not None)

    @property
    def as_study(self) -> Study:
        """The same models, data and methods as a study of their scores."""
        asked = self.settings
        return Study(
            path=self.path,
            text=self.text,
            title=self.title,
            methods=self.methods,
            metrics=(),
            select=(),
            agreement=False,
            settings=StudySettings(asked.unit, "predicted", asked.of, asked.removal, (asked.seed,), asked.truncate),
            models=self.models,
            data=self.data,
            runs=self.runs,
            claims=(),
        )


def names_trust(path: str | Path) -> bool:
    """Whether a file is of this sort; False where it cannot be read, for the reader of other studies to say why."""
    try:
        return is_kind(tomllib.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def read(path: str | Path, works: Works) -> TrustStudy:
    """Read a file of trust. Raises DataError for one that is missing or no TOML, StudyError with its mistakes."""
    path = Path(path)
    text = text_of(path)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is no TOML: {error}.") from None
    mistakes = check(table, works)
    if mistakes:
        raise StudyError(path, mistakes)
    settings = Settings(**table.get("settings", {}))
    return TrustStudy(
        path=path,
        text=text,
        title=table["title"],
        methods=tuple(canonical(method) for method in table["methods"]),
        settings=settings,
        models={key: model_of(entry, path.parent) for key, entry in table["models"].items()},
        data={key: data_of(entry, path.parent) for key, entry in table["data"].items()},
        runs=tuple(grid(table)),
        randomisation=_randomisation(table, works, settings.seed),
        attacks=_attacks(table, works, settings.seed),
        claims=tuple(_claim(entry) for entry in table.get("claims", ())),
    )


def _randomisation(table: Mapping[str, Any], works: Works, seed: int) -> RandomisationAsked | None:
    asked = table.get("randomisation")
    if asked is None:
        return None
    plan = make(works.settings["randomisation"], rest(asked, trust_shape.RANDOMISATION), seed)
    return RandomisationAsked(asked.get("texts", RANDOMISED), plan)


def _attacks(table: Mapping[str, Any], works: Works, seed: int) -> AttacksAsked | None:
    asked = table.get("attacks")
    if asked is None:
        return None
    values = rest(asked, trust_shape.ATTACKS)
    plans = tuple(
        make(works.settings["embedding"], {**values, "objective": objective}, seed)
        for objective in asked.get("objectives", get_args(Objective))
    )
    wanted = asked.get("substitution", False)
    substitution = None if wanted is False else make(works.settings["substitution"], wanted, seed)
    return AttacksAsked(asked.get("texts", ATTACKED), plans, substitution)


def _claim(entry: Mapping[str, Any]) -> dict[str, Any]:
    rows = {key: canonical(entry[key]) for key in ("above", "below", "than") if isinstance(entry.get(key), str)}
    return {**entry, **rows}
