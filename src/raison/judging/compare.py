"""Methods side by side on the same texts, resumable."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path

from raison.combining.advice import advised
from raison.core.errors import InputError, RaisonError, UnsupportedError
from raison.core.inputs.parts import Given, Spans, plain
from raison.core.inputs.repeats import caution_of_repeats, distinct
from raison.core.inputs.unit import Granularity, Side
from raison.core.inputs.unknown_tokens import caution_of_texts
from raison.core.internals.precision import Precision
from raison.core.method import Method
from raison.core.metric import Metric
from raison.core.model import LanguageModel, asked_of
from raison.core.registry import label_of, name_of, refuse_repeated
from raison.core.results.scores import Comparison
from raison.core.targets.choices import TargetSpec, for_each_text
from raison.data.spans import given_rationales
from raison.explaining.answers import Answers, QuestionRows, judged
from raison.explaining.attribution import check
from raison.explaining.batch import BATCH, prepare
from raison.explaining.evidence import check_recreated
from raison.explaining.given_texts import InputOptions, Texts, read_names
from raison.explaining.measuring import Annotations, AnyMetric, Metrics, create_metrics
from raison.explaining.ranking import Ranking
from raison.explaining.settings import ComparisonSettings, Settings
from raison.jobs.engine import ALONE, Job, Shard, Sharing
from raison.jobs.folder import COMPARISON, begun_in, refuse_others
from raison.jobs.loadable import Loadable
from raison.jobs.runner import perform
from raison.judging.evaluate import check_metrics, default_metrics
from raison.judging.plan import Plan, check_annotations, header_of, of_predictions, plan_rows
from raison.judging.work import execute, listed
from raison.methods import CATALOGUE
from raison.models.adapters.writing.statements import Statements
from raison.models.adapters.writing.writer import Writer
from raison.progress import Advance
from raison.runs.headers import RunHead
from raison.runs.run import Run, check_same, open_run, read_run
from raison.runs.table import comparison
from raison.text.sourced import SourceTemplate

DEFAULT_METHODS = ComparisonSettings().methods


def compare(
    model: LanguageModel | Writer,
    texts: Texts | Sequence[Ranking] | QuestionRows | Answers,
    methods: str | Method | Iterable[str | Method] | None = None,
    metrics: Metrics | None = None,
    *,
    unit: Granularity | None = None,
    units: Sequence[Spans] | Side | None = None,
    text: str | list[str] | None = None,
    language: str | None = None,
    target: TargetSpec = None,
    of: str | None = None,
    removal: str | None = None,
    seed: int | Sequence[int] = 0,
    truncate: bool = False,
    precision: Precision = "float32",
    rationales: Annotations | None = None,
    select: str | Metric | Iterable[str | Metric] = (),
    out: str | Path | None = None,
    data: str = "texts",
    progress: bool | Advance = True,
    sharing: Sharing = ALONE,
    load: Callable[[], LanguageModel | Writer] | None = None,
    threshold: float | None = None,
    template: SourceTemplate | str | Path | None = None,
) -> Comparison:
    """Explain every text with every method and evaluate the explanations with every metric.

    A row of `random` scores is always included. Perturbed texts are computed once. Texts without entities are left out.

    Args:
        texts: any sequence of texts; of a query with documents, the first two of the ranking are used. For a
            generative model: prompts, or rows of questions (docs/cite.md), whose answers' log-probability is measured.
        methods, metrics, select: one name, or several; methods=None: those of DEFAULT_METHODS that work.
        target: as in `explain`; a list names each text's class. "each": every label from `threshold` on, with a table
            for each in `by_target`. For an answer: the whole of it (None), a part of it, or "each" of its sentences.
        seed: the seed of random methods; several seeds run them once with each, and the results are averaged.
        rationales: what people marked in each text; see `evaluate`.
        select: metrics that choose each text's map among those that a method offers. Every method that offers several
            gets one more row per metric, and so does `random` with as many draws, as the control for choosing.
        out: a folder for every explanation and score. If it contains this run, the run is resumed.
        data: the texts' name in the table. progress: a bar on stderr, or a function called with finished texts.
        sharing: with `out`, this process's share of the work, or the number of processes to start; these call `load` to
            load a model that cannot be sent to them. template: the prompt for a question with sources; see `cite`.
            The others are those of `explain` and `evaluate`.

    Raises InputError, UnknownNameError and UnsupportedError before anything runs; DataError for a folder that holds
    another run, or if no space is left (what was written stays usable).
    """
    given, seeds = judged(model, texts, InputOptions(unit, units, text, language), template, truncate), _seeds(seed)
    reader = given.model
    settings = Settings(given.unit, target, asked_of(reader, of), removal, seeds[0], truncate, precision)
    choosers = create_metrics(select)
    rows = plan_rows(_created(reader, methods), choosers, seeds)
    chosen = _judging(reader, metrics)
    marks = given.gold if rationales is None else given_rationales([*rationales], list(map(plain, given.texts)))
    plan = of_predictions(Plan(reader, given.texts, marks, rows, chosen, settings, data), threshold)
    if out is not None:
        return _compared(plan, choosers, Path(out), _Team(sharing, given.loading(load)), progress)
    return _compared_in_memory(plan, choosers, sharing, progress)


def _compared_in_memory(
    plan: Plan, choosers: Sequence[AnyMetric], sharing: Sharing, progress: bool | Advance
) -> Comparison:
    if sharing != ALONE:
        raise InputError("processes that share a comparison need a common folder: pass out= as well.")
    run = Run(header_of(plan, check_plan(plan, choosers)))
    execute(plan, run, progress)
    return comparison(run)


def _created(model: LanguageModel, methods: str | Method | Iterable[str | Method] | None) -> list[Method]:
    if methods is None:
        methods = [name for name in DEFAULT_METHODS if not CATALOGUE.get(name).lacking(model)]
    created = [CATALOGUE.create(method) for method in read_names(methods)]
    if not created:
        raise InputError("no method given: name at least one, or leave methods out for the usual ones.")
    return created


def _judging(model: LanguageModel, metrics: Metrics | None) -> tuple[AnyMetric, ...]:
    created = tuple(create_metrics(default_metrics(model) if metrics is None else metrics))
    if not created:
        raise InputError("no metric given: name at least one, or leave metrics out for the usual ones.")
    refuse_repeated("the metric", map(label_of, created))
    return created


def _seeds(seed: int | Sequence[int]) -> tuple[int, ...]:
    seeds = tuple(seed) if isinstance(seed, Iterable) else (seed,)
    if not seeds or len(set(seeds)) < len(seeds) or not all(isinstance(one, Integral) for one in seeds):
        raise InputError(f"seed is {seed!r:.40}: give a whole number, or a list of distinct numbers.")
    return tuple(map(int, seeds))


def _compared(
    plan: Plan, choosers: Sequence[AnyMetric], folder: Path, team: "_Team", progress: bool | Advance
) -> Comparison:
    """A run in a folder; a folder of other work is refused before anything is written."""
    refuse_others(folder, COMPARISON)
    if (folder / COMPARISON.marker).exists():
        # The texts were checked when the run began.
        header = header_of(plan)
        check_same(folder, header)
    else:
        header = header_of(plan, check_plan(plan, choosers))
    load = None if team.load is None else partial(_loaded, replace(plan, model=None), team.load)  # type: ignore[arg-type]
    perform(_ComparisonWork(Loadable(plan, load), header, folder), team.sharing, progress)
    found = comparison(read_run(folder))
    if found.texts == header.texts:
        return found
    missing = f"unfinished: {found.texts:,} of {header.texts:,} texts. The table covers these; do the other shares"
    return replace(found, cautions=(*found.cautions, missing))


@dataclass(frozen=True, slots=True)
class _Team:
    """Run a comparison in one process or in several, which load the model themselves if `load` is given."""

    sharing: Sharing
    load: Callable[[], LanguageModel] | None


@dataclass(frozen=True)
class _ComparisonWork:
    """A comparison in a folder."""

    plan: Loadable[Plan]
    header: RunHead
    folder: Path

    @contextmanager
    def opened(self, shard: Shard) -> Iterator[Callable[[], list[Job]]]:
        """Inside, the folder is this process's, or its share of it. Raises DataError for one of other work."""
        plan, begin = self.plan.get(), partial(open_run, self.header, self.folder, shard.file)
        with begun_in(self.folder, COMPARISON, shard.file, begin) as run:
            yield lambda: listed(plan, run, shard)


def _loaded(plan: Plan, load: Callable[[], LanguageModel]) -> Plan:
    """A plan without its model, with the one that `load` returns."""
    return replace(plan, model=load())


def noted_header(plan: Plan) -> RunHead:
    """The header of a plan within larger work, with the cautions to report with its results."""
    return header_of(plan, _cautions(plan))


def check_plan(plan: Plan, choosers: Sequence[AnyMetric] = ()) -> tuple[str, ...]:
    """Refuse what is impossible, before hours of work and before a folder is touched.

    Returns what can be done but must be reported with the results.
    """
    for method in dict.fromkeys(row.method for row in plan.rows):
        check(plan.model, method)
    check_recreated((name_of(row.method) for row in plan.rows if row.chooser is None), plan.metrics)
    has_rationales = bool(plan.rationales)
    judges, repeated = [*plan.metrics, *choosers], plan.threshold is not None
    check_metrics(plan.model, judges, has_rationales=has_rationales, texts=len(plan.texts), repeated=repeated)
    for_each_text(plan.settings.target, len(plan.texts))
    prepare(plan.model, plan.texts[:1], plan.settings_of(range(1)))
    _check_pairs(plan)
    check_annotations(plan)
    return _cautions(plan)


def _cautions(plan: Plan) -> tuple[str, ...]:
    """What readers of the results have to know of texts left out, unknown tokens, repeats, and advice to auto."""
    follows = any(name_of(row.method) == "auto" for row in plan.rows)
    advice = advised(plan.model) if follows else None
    told = () if advice is None else (f"auto follows an audit in this machine's cache, which recommended {advice}",)
    repeats = caution_of_repeats(len(plan.texts), len(distinct(plan.texts, plan.settings.target)))
    left_out = (plan.left_out,) if plan.left_out else ()
    return (*left_out, *_caution_of_removal(plan), *caution_of_texts(_unknown_shares(plan)), *repeats, *told)


def _caution_of_removal(plan: Plan) -> tuple[str, ...]:
    """That sources are not removed as `raison.cite` does by default, which may put others first."""
    removal = plan.settings.removal or plan.model.removals[0]
    answers = plan.model.answers.values() if isinstance(plan.model, Statements) else ()
    if removal == "delete" or not any(answered.source.sources for answered in answers):
        return ()
    return (f"tokens of removed sources become '{removal}', and raison.cite deletes sources (removal='delete')",)


def _check_pairs(plan: Plan) -> None:
    """InputError for a text whose predicted class is the one that it is to be explained against."""
    target = plan.settings.target
    if isinstance(target, list) and any(isinstance(one, tuple) and one[0] is None for one in target):
        for start in range(0, len(plan.texts), BATCH):
            numbers = range(start, min(start + BATCH, len(plan.texts)))
            prepare(plan.model, [plan.texts[number] for number in numbers], plan.settings_of(numbers))


def _unknown_shares(plan: Plan) -> list[float]:
    """Each text's share of tokens unknown to the vocabulary. Raises InputError for an unreadable text.

    One text at a time: a large data set's tokens need not be in memory together.
    """
    bounds = {row.label: most for row in plan.rows if (most := row.method.most_units) is not None}
    shares = []
    for number, text in enumerate(plan.texts, start=1):
        try:
            encoding = plan.model.tokenized([text], plan.settings.unit, plan.settings.truncate)
        except InputError as error:
            raise type(error)(f"text {number} of {len(plan.texts)}: {error}") from None
        [units] = encoding.unit_counts
        for label, most in bounds.items():
            if units > most:
                raise InputError(f"text {number} of {len(plan.texts)} {_too_long(label, units, most)}")
        shares.append(encoding.unknown(plan.model.unknown_id)[0].share)
    return shares


def allowed(
    model: LanguageModel, methods: Sequence[Method], texts: Sequence[Given], settings: Settings
) -> tuple[list[Method], dict[str, str]]:
    """The methods that can explain all of the texts with the model, and why the others cannot."""
    # One at a time: a large data set's tokens need not be in memory together.
    units = max(model.tokenized([text], settings.unit, settings.truncate).unit_counts[0] for text in texts)
    able, reasons = [], {}
    for method in methods:
        try:
            check(model, method)
        except RaisonError as error:
            reasons[label_of(method)] = "; ".join(error.reasons) if isinstance(error, UnsupportedError) else str(error)
            continue
        if method.most_units is not None and units > method.most_units:
            reasons[label_of(method)] = f"a text {_too_long(label_of(method), units, method.most_units)}"
        else:
            able.append(method)
    return able, reasons


def _too_long(label: str, units: int, most: int) -> str:
    return f"has {units} units, and {label} allows at most {most}: leave it out, raise its limit, or use coarser units."
