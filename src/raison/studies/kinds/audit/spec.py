"""What an audit is to do: how much is tried, on what, and as which comparisons and study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from raison.attribution import Settings
from raison.attribution import check as check_method
from raison.compare import Plan, allowed, plan_rows
from raison.core.errors import InputError
from raison.core.model import LanguageModel, asked_of, check_classes
from raison.core.registry import label_of
from raison.core.unit import Text
from raison.data import Dataset, Row
from raison.evaluate import create_metrics
from raison.methods import CATALOGUE
from raison.studies.kinds.audit.results import CHANGES, COMPREHENSIVE, FAITHFULNESS, HARMLESS, SUFFICIENT
from raison.studies.kinds.comparison.results import FILE
from raison.studies.kinds.comparison.spec import StudyData, StudyModel
from raison.studies.kinds.trust.jobs import Run
from raison.studies.kinds.trust.spec import AttacksAsked, RandomisationAsked, TrustStudy
from raison.trust.attacks import EmbeddingAttack
from raison.trust.randomisation import Randomisation
from raison.trust.substitution import Substitution

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
"""What is audited unless methods are named: of these, all that the model allows.

The usual ones, and the best at few passes by the records of studies/catalogue_sst2 (docs/trust.md has the numbers).
"""
MODEL, DATA = "model", "data"

_RANDOMISATION = Randomisation(orders=("cascading",))
_ATTACK = EmbeddingAttack(epsilon=0.25, relative=True, steps=20, learning_rate=0.05, optimiser="sign", beta=10.0)
_SUBSTITUTION = Substitution(swaps=2, tries=6)


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """How much is tried: faithfulness on all texts, the rest on the first so many."""

    randomised: int = 16
    changed: int = 12
    attacked: int = 8
    randomisation: Randomisation = _RANDOMISATION
    attack: EmbeddingAttack = _ATTACK
    substitution: Substitution = _SUBSTITUTION

    def __post_init__(self) -> None:
        for name in ("randomised", "changed", "attacked"):
            if getattr(self, name) < 2:
                raise InputError(f"{name} is {getattr(self, name)}: an interval needs at least 2 texts.")


@dataclass(frozen=True, slots=True)
class Job:
    """An audit that can be run; `unable` says why usual methods are not in it, `folder` is where it is written."""

    model: LanguageModel
    texts: tuple[Text, ...]
    methods: tuple[str, ...]
    unable: Mapping[str, str]
    settings: Settings
    plan: AuditPlan
    data: str
    folder: Path
    progress: bool


def job_of(
    model: LanguageModel,
    texts: Sequence[Text],
    methods: Sequence[str] | None,
    what: tuple[AuditPlan, Settings],
    place: tuple[Path, str, bool],
) -> Job:
    """Check what is asked for: `what` holds plan and settings, `place` the folder, the data's name and the progress."""
    if isinstance(texts, str) or len(texts) < 2:
        raise InputError("an audit needs a list of at least 2 texts: an interval is about several.")
    plan, settings = what
    check_classes(model, "an audit, with attacks that leave the predicted class as it is,")
    if settings.target is not None:
        raise InputError("an audit explains what the model predicts: leave target out.")
    wanted = [CATALOGUE.create(name) for name in (METHODS if methods is None else methods)]
    for method in wanted if methods is not None else ():
        check_method(model, method)
    longest = max(model.encode([text], settings.unit, settings.truncate).unit_counts[0] for text in texts)
    able, unable = allowed(model, wanted, longest)
    if methods is not None and unable:
        raise InputError(" ".join(f"{label}: {why}" for label, why in unable.items()))
    chosen = [label_of(method) for method in able]
    if not chosen:
        raise InputError("no method is left to audit: name those that the model allows (raison doctor lists them).")
    folder, data, progress = place
    settings = replace(settings, of=asked_of(model, settings.of))
    return Job(model, tuple(texts), tuple(dict.fromkeys(chosen)), unable, settings, plan, data, folder, progress)


def study_of(job: Job) -> TrustStudy:
    """The audit's randomisation and attacks as a study of trust."""
    plan = job.plan
    return TrustStudy(
        path=job.folder / FILE,
        text="",
        title=job.data,
        methods=job.methods,
        settings=job.settings,
        models={MODEL: StudyModel(job.model.name)},
        data={DATA: StudyData(job.data)},
        runs=((MODEL, DATA),),
        randomisation=RandomisationAsked(min(plan.randomised, len(job.texts)), plan.randomisation),
        attacks=AttacksAsked(min(plan.attacked, len(job.texts)), (plan.attack,), plan.substitution),
        claims=(),
    )


def run_of(job: Job) -> Run:
    """The audit's texts as the one run of that study."""
    rows = tuple(Row(text, None, number) for number, text in enumerate(job.texts, start=1))
    return Run(MODEL, DATA, Dataset(job.data, rows))


def comparisons(job: Job) -> dict[str, Plan]:
    """The comparisons that an audit runs, by their folders."""
    wanted = {
        FAITHFULNESS: ((COMPREHENSIVE, SUFFICIENT), len(job.texts)),
        CHANGES: ((HARMLESS,), job.plan.changed),
    }
    rows = plan_rows([CATALOGUE.create(method) for method in job.methods], (), (job.settings.seed,))
    return {
        name: Plan(job.model, job.texts[:texts], (), rows, tuple(create_metrics(metrics)), job.settings, job.data)
        for name, (metrics, texts) in wanted.items()
    }
