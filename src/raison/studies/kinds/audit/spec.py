"""The plan of an audit: which tests on how many texts; from a call, or from a study file.

    schema = 1
    kind = "audit"
    title = "..."
    methods = ["occlusion", "saliency"]
    [settings]
    unit = "word"
    [model]
    name = "demo/sst2"
    [data]
    source = "sst2"
    limit = 50
    [texts]
    randomised = 16

Without methods, those of METHODS that the model allows are used. [texts] sets the number of texts for each test
(AuditPlan).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from raison.core.errors import InputError
from raison.core.inputs.parts import Given
from raison.core.inputs.repeats import distinct
from raison.core.model import LanguageModel, asked_of
from raison.core.registry import label_of
from raison.core.settings.fields import Setting, check
from raison.core.settings.tables import FLAT, TableReading
from raison.core.targets.choices import for_each_text
from raison.explaining.answers import Answers
from raison.explaining.attribution import check as check_method
from raison.explaining.each_prediction import sought_by, without_prediction
from raison.explaining.measuring import create_metrics
from raison.explaining.settings import Settings
from raison.judging.compare import allowed
from raison.judging.evaluate import removing_in_place
from raison.judging.plan import Plan, plan_rows
from raison.methods import CATALOGUE
from raison.studies import parts
from raison.studies.entries import PREDICTED, About, StudyData, StudyModel
from raison.studies.file import MistakesError, entries_of
from raison.studies.kinds.audit.evidence import HARMLESS
from raison.studies.kinds.audit.recommendation import COMPREHENSIVE, SUFFICIENT
from raison.studies.kinds.audit.results import CHANGES, FAITHFULNESS
from raison.studies.kinds.audit.subject import AuditSubject
from raison.trust import implementation
from raison.trust.attack_settings import EmbeddingAttack
from raison.trust.operations import TrustOperations
from raison.trust.randomisation import Randomisation
from raison.trust.substitution import Substitution
from raison.trust.trial import AttacksAsked, RandomisationAsked, TrustTrial

METHODS = (
    "integrated_gradients",
    "kernel_shap",
    "partition_shap",
    "lime",
    "occlusion",
    "deep_lift",
    "decompx",
    "saliency",
    "attention_average",
    "attention_last",
    "aml",
    "sp_pi",
    "mp_pi",
)
"""The default methods of an audit, as far as the model allows them.

The common methods, and the best ones with few passes in studies/catalogue_sst2 (docs/trust.md has the numbers).
"""
WRITTEN = ("occlusion", "context_cite", "kernel_shap", "input_x_gradient", "attention_rollout", "mp_pi")
"""The same for a generative language model."""
_RANDOMISATION = Randomisation(orders=("cascading",))
_ATTACK = EmbeddingAttack(epsilon=0.25, relative=True, steps=20, learning_rate=0.05, optimiser="sign", beta=10.0)
_SUBSTITUTION = Substitution(swaps=2, tries=6)
_Texts = Annotated[int, Setting(least=2)]
"""A number of texts, over which there is an interval."""
_VERDICTS = {"claims": "an audit has its own verdicts; leave claims out."}
_AS_CALLED = {
    name: f"{name} can only be set in a call: leave it out." for name in ("randomisation", "attack", "substitution")
}


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The extent of the tests: faithfulness on all texts, the others on the first ones."""

    randomised: _Texts = 16
    changed: _Texts = 24
    attacked: _Texts = 24
    randomisation: Randomisation = _RANDOMISATION
    attack: EmbeddingAttack = _ATTACK
    substitution: Substitution = _SUBSTITUTION

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class AuditFile:
    """The file."""

    about: Annotated[About, FLAT]
    model: StudyModel
    data: StudyData
    methods: tuple[str, ...] | None = None
    settings: Annotated[Settings, TableReading(without=PREDICTED)] = Settings()  # noqa: RUF009
    texts: Annotated[AuditPlan, TableReading(without=_AS_CALLED)] = AuditPlan()


@dataclass(frozen=True, slots=True)
class Audited:
    """A valid file, or the request of a call, with model and data already loaded."""

    methods: tuple[str, ...] | None
    settings: Settings
    plan: AuditPlan
    model: StudyModel | None = None
    data: StudyData | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """An audit that can be run on these texts; `unable` says why usual methods are not in it.

    `answers` are those of a language model that writes; `others` counts those that it does not give itself, `repeats`
    texts that were given before, and `empty` texts without an entity: they are left out, because they are no evidence.
    """

    texts: tuple[Given, ...]
    methods: tuple[str, ...]
    unable: Mapping[str, str]
    settings: Settings
    plan: AuditPlan
    data: str
    answers: Answers | None = None
    others: int = 0
    repeats: int = 0
    empty: int = 0

    @property
    def trial(self) -> TrustTrial:
        """Randomisation and attacks."""
        few = len(self.texts)
        return TrustTrial(
            self.methods,
            self.settings,
            RandomisationAsked(min(self.plan.randomised, few), self.plan.randomisation),
            AttacksAsked(min(self.plan.attacked, few), (self.plan.attack,), self.plan.substitution),
        )

    def comparisons(self, model: LanguageModel) -> dict[str, Plan]:
        """The comparisons that an audit runs, by their folders."""
        wanted = {
            FAITHFULNESS: ((COMPREHENSIVE, SUFFICIENT), len(self.texts)),
            CHANGES: ((HARMLESS,), self.plan.changed),
        }
        rows = plan_rows([CATALOGUE.create(method) for method in self.methods], (), (self.settings.seed,))
        plans = {}
        for name, (metrics, count) in wanted.items():
            texts = self.texts[:count]
            settings = self.settings.of_texts(range(len(texts)))
            judges = tuple(create_metrics(removing_in_place(model, metrics)))
            plans[name] = Plan(model, texts, (), rows, judges, settings, self.data)
        return plans


def tools() -> TrustOperations:
    """The work of raison.trust."""
    return implementation.operations()


def parse(table: Mapping[str, Any], place: Path, _works: TrustOperations) -> Audited:
    """A parsed file in the folder `place`. Raises MistakesError with every mistake in it."""
    file, mistakes = entries_of(AuditFile, table, _VERDICTS)
    mistakes += parts.settings_mistakes(file.settings)
    mistakes += [] if file.methods is None else parts.labels_in(file.methods, "methods", CATALOGUE)[1]
    mistakes += parts.model_mistakes(file.model, "[model]") + parts.data_mistakes(file.data, "[data]")
    if mistakes:
        raise MistakesError(mistakes)
    model, data = parts.model_beside(place, file.model), parts.beside(place, file.data)
    return Audited(file.methods, file.settings, file.texts, model, data)


def _is_predicted(target: object) -> bool:
    """Whether the prediction is explained, alone or against another class."""
    pairs = target if isinstance(target, list) else [target]
    return target is None or all(isinstance(one, tuple) and len(one) == 2 and one[0] is None for one in pairs)


def suite_of(subject: AuditSubject, spec: Audited, data: str) -> Suite:
    """Check the request for a model and texts; `data` is the name of the texts."""
    model, given, settings, methods = subject.model, subject.texts, subject.settings, spec.methods
    target = settings.target
    for_each_text(target, len(given))
    if not _is_predicted(target) or (target is not None and subject.answers is not None):
        raise InputError(
            "an audit explains predictions: leave target out, or give a pair (None, other class) for each text."
        )
    different = distinct(given, target)
    empty = set(without_prediction(model, given, settings))
    kept = [number for number in different if number not in empty]
    texts, settings = [given[number] for number in kept], settings.of_texts(kept)
    if len(texts) < 2:
        where = f" in which the model finds some {sought_by(model)}" if empty else ""
        raise InputError(
            f"an audit needs a list of at least 2 different texts{where}, since an interval needs several."
        )
    usual = WRITTEN if subject.answers is not None else METHODS
    wanted = [CATALOGUE.create(name) for name in (usual if methods is None else methods)]
    for method in wanted if methods is not None else ():
        check_method(model, method)
    able, unable = allowed(model, wanted, texts, settings)
    if methods is not None and unable:
        raise InputError(" ".join(f"{label}: {why}" for label, why in unable.items()))
    chosen = [label_of(method) for method in able]
    if not chosen:
        raise InputError("no method is left to audit: name those that the model allows (raison doctor lists them).")
    settings = replace(settings, of=asked_of(model, settings.of))
    names = tuple(dict.fromkeys(chosen))
    repeats, without = len(given) - len(different), len(different) - len(texts)
    return Suite(
        tuple(texts), names, unable, settings, spec.plan, data, subject.answers, subject.others, repeats, without
    )
