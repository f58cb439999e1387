"""Which explanations can be trusted on this model: one suite of tests, resumable, with a verdict on every method."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from raison.combining import advice
from raison.core.errors import DataError, InputError, RaisonError
from raison.core.inputs.parts import Spans, written
from raison.core.inputs.unit import PART, Side
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.registry import label_of, name_of
from raison.explaining.answers import Answers, QuestionRows
from raison.explaining.given_texts import InputOptions, Texts, read_names
from raison.explaining.ranking import Ranking, fitting
from raison.explaining.settings import Settings
from raison.jobs.engine import ALONE, Job, Sharing
from raison.jobs.folder import AUDIT, read_marker, refuse_others, working_in, write_marker
from raison.jobs.identity import DATA, IDENTITY, SETTINGS, digest_of
from raison.jobs.loadable import Loadable
from raison.jobs.store import RecordStore
from raison.judging.compare import noted_header
from raison.judging.work import jobs_of
from raison.methods import CATALOGUE
from raison.models.adapters.writing.writer import Writer
from raison.models.derived.identity import files_identity, identity_of
from raison.models.loading.load import as_classifier
from raison.progress import Advance, ProgressCallback
from raison.report.tables.records import Cell, Table
from raison.runs.reuse import runs_in, take_over, whole
from raison.runs.run import HEADER, open_run
from raison.studies import kind
from raison.studies.data_loading import load_rows
from raison.studies.entries import StudyModel
from raison.studies.file import Study, StudyError
from raison.studies.folder import header_of as study_header
from raison.studies.folder import versions
from raison.studies.kind import EstimateTable, Kind
from raison.studies.kinds.audit.cost import AuditCost, cost_of
from raison.studies.kinds.audit.results import ANSWERED, SPENT, TRUST, Audit, read
from raison.studies.kinds.audit.spec import Audited, AuditPlan, Suite, suite_of, tools
from raison.studies.kinds.audit.subject import AuditSubject, subject_of
from raison.studies.made import described
from raison.studies.plans import load_entry
from raison.studies.runner import execute
from raison.text.sourced import SourceTemplate
from raison.trust.results import ATTACKS, SIMILARITIES, head_of
from raison.trust.trial import entry_of
from raison.trust.trial_jobs import TrialJobs

REUSED = (HEADER, SIMILARITIES, ATTACKS)
"""Files whose records can be taken over from other folders."""


@dataclass(frozen=True, kw_only=True)
class Examined(kind.Examined):
    """An audit that can be run. The model of a call is given; that of a file is loaded on demand."""

    suite: Suite
    loadable: Loadable[LanguageModel]

    @cached_property
    def model(self) -> LanguageModel:
        """The audited model."""
        return self.loadable.get()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "model"}


def _suited(load: Callable[[], LanguageModel | Writer], suite: Suite) -> LanguageModel:
    """The model that `load` returns, as it explains the texts of the suite."""
    model = load()
    if suite.answers is None:
        return fitting(as_classifier(model), suite.texts)
    assert isinstance(model, Writer), "the model wrote these answers"
    return suite.answers.of(model)


def audit(
    model: LanguageModel | Writer,
    texts: Texts | Sequence[Ranking] | QuestionRows | Answers,
    methods: str | Method | Iterable[str | Method] | None = None,
    *,
    out: str | Path,
    text: str | list[str] | None = None,
    units: Sequence[Spans] | Side | None = None,
    language: str | None = None,
    plan: AuditPlan | None = None,
    settings: Settings | None = None,
    data: str = "texts",
    progress: bool | Advance = True,
    sharing: Sharing = ALONE,
    load: Callable[[], LanguageModel | Writer] | None = None,
    template: SourceTemplate | str | Path | None = None,
) -> Audit:
    """Explain texts with several methods, test every explanation, and say which method can be trusted.

    Four questions (docs/trust.md): is a method faithful, does it depend on the model's parameters, does it stay the
    same under harmless changes, and does it withstand attacks? The measurements are written to the folder `out`; call
    again to resume an interrupted audit. The recommendation of a finished audit is stored in the cache, where
    method="auto" finds it for this exact model.

    Args:
        texts: any sequence of texts, or of queries with documents as in `compare`; for rows, `text` names the column.
            Repeats, and texts in which a tagger finds no entity, are left out.
            `units` and `language` are those of `explain`. For a generative model: rows of questions as in `compare`,
            with the prompt `template`; answers that it would not generate itself are left out, and nothing is attacked.
        methods: a name, call or instance, or any sequence of them; by default the usual ones that the model allows.
        plan: the numbers of texts for the tests, and the settings of randomisation and attacks.
        settings: what is explained: always the predicted class, or the number of a model with one number.
        data: the name of the texts in the report.
        progress: a progress bar on stderr, or a function that is called with finished parts.
        sharing: this process's share of the work, or the number of processes to start; these call `load` to load a
            model that cannot be sent to them. Verdicts use finished work.

    Raises:
        InputError: fewer than two texts or no method.
        UnsupportedError: a named method that does not work on the model, or a model without distinguishable blocks.
        DataError: `out` contains something else.
    """
    folder = Path(out)
    refuse_others(folder, AUDIT)
    subject = subject_of(model, texts, InputOptions(None, units, text, language), settings, template)
    # An audit without a study file.
    study = Study(folder, "", Kind("audit"), data, _asked(methods, plan, subject.settings), tools())
    suite = suite_of(subject, study.spec, data)
    begun = _examined(study, subject.model, suite, None, read_marker(folder, AUDIT), load)
    execute(begun, folder, progress, sharing=sharing)
    if sharing.shard.count == 1:
        _count_again(folder, suite)
    audited = read(folder)
    if suite.answers is None:
        _remember(subject.model, audited)
    return audited


def _count_again(folder: Path, suite: Suite) -> None:
    """Note how many texts this call left out: the same texts may be given with more repeats than before."""
    known = read_marker(folder, AUDIT) or {}
    counts = {"others": suite.others, "repeats": suite.repeats, "empty": suite.empty}
    if counts != {name: known.get(name, 0) for name in counts}:
        with working_in(folder, AUDIT):
            write_marker(folder, AUDIT, known | counts)


def _remember(model: LanguageModel, audited: Audit) -> None:
    """Store the recommendation of a finished audit for method="auto"; report it if that is not possible."""
    done, wanted = audited.progress
    if audited.recommended is None or done < wanted or audited.unfit_for_auto:
        return
    try:
        advice.remember(model, audited.recommended)
    except DataError as error:
        warnings.warn(f"method='auto' will not use this audit: {error}", stacklevel=3)


def estimate_audit(
    model: LanguageModel | Writer,
    texts: Texts | Sequence[Ranking] | QuestionRows | Answers,
    methods: str | Method | Iterable[str | Method] | None = None,
    *,
    text: str | list[str] | None = None,
    units: Sequence[Spans] | Side | None = None,
    language: str | None = None,
    plan: AuditPlan | None = None,
    settings: Settings | None = None,
    template: SourceTemplate | str | Path | None = None,
) -> AuditCost:
    """Count an audit's passes, time some of them and a few steps of its attacks. Runs the model for some seconds.

    Raises what `audit` raises before it begins.
    """
    subject = subject_of(model, texts, InputOptions(None, units, text, language), settings, template)
    return cost_of(subject.model, suite_of(subject, _asked(methods, plan, subject.settings), ""))


def _asked(
    methods: str | Method | Iterable[str | Method] | None,
    plan: AuditPlan | None,
    settings: Settings,
) -> Audited:
    """The request of a call."""
    names = None if methods is None else tuple(map(_named, read_names(methods)))
    return Audited(names, settings, plan or AuditPlan())


def _named(method: str | Method) -> str:
    """The name or call by which other processes make a method anew."""
    if isinstance(method, str):
        return method
    created = CATALOGUE.create(method)
    if name_of(created) not in CATALOGUE.names:
        raise InputError(
            f"{type(created).__name__} is not a method of the catalogue, and an audit makes methods anew by their "
            "names: test it with raison.compare, or add its file to raison/methods."
        )
    return label_of(created)


def examine(study: Study, limit: int | None = None, _sources: Sequence[Path] = ()) -> Examined:
    """Load the model and the data of a file. Raises StudyError with every problem found."""
    spec = study.spec
    try:
        data = load_rows(spec.data, limit)
        model = load_entry(spec.model)
        if isinstance(model, Writer):
            subject = subject_of(model, data, InputOptions(), spec.settings, spec.data.template)
        else:
            texts = data.parted if spec.settings.unit == PART else data.texts
            subject = AuditSubject(fitting(model, texts), texts, spec.settings)
        suite = suite_of(subject, spec, data.name)
        examined = _examined(study, subject.model, suite, limit, None, partial(load_entry, spec.model))
    except RaisonError as error:
        raise StudyError(study.path, [str(error)]) from None
    # It is loaded again when it is used, in this process or in another one.
    return replace(examined, loadable=replace(examined.loadable, given=None))


def _examined(
    study: Study,
    model: LanguageModel,
    suite: Suite,
    limit: int | None,
    known: Mapping[str, Any] | None,
    load: Callable[[], LanguageModel | Writer] | None,
) -> Examined:
    stated = [model.name, suite.methods, asdict(suite.settings), asdict(suite.plan)]
    files = files_identity(model, map(CATALOGUE.create, suite.methods))
    identity = {
        **identity_of(model),
        **files,
        DATA: digest_of([written(text) for text in suite.texts]),
        SETTINGS: digest_of(stated),
    }
    parts = {name: noted_header(plan) for name, plan in suite.comparisons(model).items()}
    # The estimate and what is left out are determined at the start.
    header = _header(study, model, suite, limit) if known is None else known
    loadable = Loadable(model, None if load is None else partial(_suited, load, suite))
    return Examined(study=study, header={**header, IDENTITY: identity}, parts=parts, suite=suite, loadable=loadable)


def _header(study: Study, model: LanguageModel, suite: Suite, limit: int | None) -> dict[str, Any]:
    operations = study.tools
    about = {**described(StudyModel(model.name), model), "blocks": operations.blocks(model)}
    trust = {"name": TRUST, "model": model.name, "data": "data", "source": suite.data}
    return {
        **study_header(study, limit),
        "name": study.name if study.text else suite.data,
        "model": model.name,
        "data": suite.data,
        "texts": len(suite.texts),
        "methods": list(suite.methods),
        "unable": dict(suite.unable),
        "unit": suite.settings.unit,
        "of": suite.settings.of,
        "number": _number(model),
        "others": suite.others,
        "repeats": suite.repeats,
        "empty": suite.empty,
        "contrasts": suite.settings.target is not None,
        "parameters": about.get("parameters", 0),
        "blocks": about["blocks"],
        "plan": asdict(suite.plan),
        "estimate": cost_of(model, suite).to_dict(),
        "trust": trust | entry_of(suite.trial, operations, model, suite.texts),
        "about": about,
    }


def _number(model: LanguageModel) -> str:
    """The name of a model's number; "" for classes."""
    return {"number": model.classes[0], "statement": ANSWERED}.get(model.outputs, "")


def begin(examined: Examined, folder: Path, sources: Sequence[Path]) -> None:
    """Take over rows of comparisons, and records of randomised blocks and attacks."""
    for name, header in examined.parts.items():
        take_over(open_run(header, folder / name), [whole(header)], runs_in(sources))
    _trial_jobs(examined, folder).take_over(sources)


def jobs(examined: Examined, folder: Path, shard: int | None = None) -> list[Job]:
    """Faithfulness on all texts, harmless changes, randomised blocks and attacks on the first ones."""
    listed = []
    for name, header in examined.parts.items():
        run = open_run(header, folder / name, shard)
        listed += [_timed(job, name, folder, shard) for job in jobs_of(partial(_plan, examined, name), run, name)]
    return listed + [_timed(job, TRUST, folder, shard) for job in _trial_jobs(examined, folder, shard).jobs()]


def _trial_jobs(examined: Examined, folder: Path, shard: int | None = None) -> TrialJobs:
    known = examined.header[IDENTITY]
    identity = {part: known[part] for part in known if part not in (DATA, SETTINGS)}
    return TrialJobs(
        examined.suite.trial,
        examined.study.tools,
        lambda: examined.model,
        examined.suite.texts,
        head_of(examined.header["trust"]),
        {**identity, "versions": digest_of(versions())},
        folder,
        shard,
    )


def _plan(examined: Examined, name: str) -> Any:
    return examined.suite.comparisons(examined.model)[name]


def _timed(job: Job, part: str, folder: Path, shard: int | None) -> Job:
    """The job, which records its seconds, also if it is interrupted."""

    def run(advance: ProgressCallback) -> None:
        started = time.perf_counter()
        try:
            job.run(advance)
        finally:
            spent = round(time.perf_counter() - started, 3)
            RecordStore(folder / SPENT, shard).append([{"part": part, "seconds": spent}])

    return replace(job, run=run)


def estimate(examined: Examined) -> EstimateTable:
    """Seconds of each part."""
    times = examined.header["estimate"]
    rows = tuple((name, (Cell(f"{seconds:,.0f} s"),)) for name, seconds in times["parts"].items())
    left_out = tuple(f"{method} is left out: {why}" for method, why in examined.suite.unable.items())
    return EstimateTable(Table("", ("part", "about"), rows), left_out, times)
