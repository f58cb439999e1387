"""Methods side by side on the same texts, resumable."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from raison.core.errors import InputError, RaisonError, UnsupportedError
from raison.core.explanation import Explanation
from raison.core.method import Method
from raison.core.metric import GroupMetric, Metric
from raison.core.model import LanguageModel, asked_of
from raison.core.registry import label_of
from raison.core.results import Comparison
from raison.core.target import TargetSpec
from raison.core.unit import Granularity, Text
from raison.core.unknown import caution_of_texts
from raison.explaining.attribution import Batch, Settings, check, check_model, prepare, run, run_candidates
from raison.explaining.measuring import Annotations, AnyMetric, create_metrics, measure
from raison.explaining.selection import best_maps
from raison.jobs.engine import WHOLE, Job, Shard, do
from raison.jobs.folder import COMPARISON, beginning, refuse_others, working_in
from raison.judging.evaluate import check_metrics, costs_of, default_metrics, measure_groups
from raison.judging.plan import Plan, header_of, plan_rows
from raison.methods import CATALOGUE
from raison.progress import Advance, Told
from raison.runs.run import CAUTIONS, Record, Run, check_same, open_run
from raison.runs.table import comparison

DEFAULT_METHODS = ("integrated_gradients", "kernel_shap", "lime", "occlusion")

CHUNK = 16
"""Texts that are explained, judged and written together. Fixed, so that a resumed run repeats the same batches."""


def compare(
    model: LanguageModel,
    texts: Sequence[Text],
    methods: Sequence[str | Method] = DEFAULT_METHODS,
    metrics: Sequence[str | AnyMetric] | None = None,
    *,
    unit: Granularity = "word",
    target: TargetSpec = None,
    of: str | None = None,
    removal: str | None = None,
    seed: int | Sequence[int] = 0,
    truncate: bool = False,
    precision: str = "float32",
    rationales: Annotations | None = None,
    select: Sequence[str | Metric] = (),
    out: str | Path | None = None,
    data: str = "texts",
    progress: bool | Advance = True,
    shard: Shard = WHOLE,
) -> Comparison:
    """Explain every text with every method and judge the explanations by every metric.

    A row of `random` scores is always included. Each prediction and each perturbed text is computed once for all
    methods and metrics together.

    Args:
        target: as in `explain`; a list names each text's class, such as its true one.
        seed: of random methods; with several seeds these methods run once with each, and the results are averaged.
        rationales: what should matter in each text, for the metrics that need it; see `evaluate`.
        select: metrics that choose each text's map among those that a method offers. Every method that offers several
            gets one more row per metric, and so does `random` with as many draws, as the control for choosing.
        out: a folder that keeps every explanation and score. An interrupted run resumes from there, and gives the same
            table as an uninterrupted one. It must be empty, or hold the same run.
        data: the name of the texts in the table.
        progress: a progress bar on stderr, or a function that is told of finished texts.
        shard: with `out`, this process does only its share of the work. The table covers the finished texts.
        The other arguments are those of `explain` and `evaluate`.

    Raises:
        InputError, UnknownNameError, UnsupportedError: before anything runs.
        DataError: a folder that holds another run, or no space left (what was written stays usable).
    """
    check_model(model)
    seeds = _seeds(seed)
    if not texts or isinstance(texts, str):
        raise InputError("texts to compare on are a list of at least one text.")
    settings = Settings(unit, target, asked_of(model, of), removal, seeds[0], truncate, precision)
    choosers = create_metrics(select)
    rows = plan_rows([CATALOGUE.create(method) for method in methods], choosers, seeds)
    chosen = tuple(create_metrics(default_metrics(model) if metrics is None else metrics))
    marks = () if rationales is None else tuple(tuple(one) for one in rationales)
    plan = Plan(model, tuple(texts), marks, rows, chosen, settings, data)
    if out is not None:
        return _compared(plan, choosers, Path(out), progress, shard)
    if shard != WHOLE:
        raise InputError("processes that share a comparison meet in a folder: give out as well.")
    found = Run(header_of(plan) | {CAUTIONS: check_plan(plan, choosers)})
    execute(plan, found, progress)
    return comparison(found)


def _seeds(seed: int | Sequence[int]) -> tuple[int, ...]:
    seeds = (seed,) if isinstance(seed, int) else tuple(seed)
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError("seed is a number, or a list of different ones.")
    return seeds


def _compared(
    plan: Plan, choosers: Sequence[AnyMetric], folder: Path, progress: bool | Advance, shard: Shard
) -> Comparison:
    """In a folder, which is refused before it is touched."""
    refuse_others(folder, COMPARISON)
    header = header_of(plan)
    if (folder / COMPARISON.marker).exists():
        # The texts were checked when the run began.
        check_same(folder, header)
    else:
        header[CAUTIONS] = check_plan(plan, choosers)
    with working_in(folder, COMPARISON, shard.file):
        with beginning(folder, shard.file):
            found = open_run(header, folder, shard.file)
        execute(plan, found, progress, shard)
        return comparison(found)


def noted_header(plan: Plan) -> dict[str, object]:
    """The header of a plan within larger work, which notes what has to be said beside its results."""
    return header_of(plan) | {CAUTIONS: list(caution_of_texts(_unknown_shares(plan)))}


def check_plan(plan: Plan, choosers: Sequence[AnyMetric] = ()) -> tuple[str, ...]:
    """Refuse whatever cannot be done, before hours of work and before a folder is touched.

    Returns what can be done but must be reported with the results.
    """
    prepare(plan.model, plan.texts[:1], _settings(plan, range(1)))
    if isinstance(plan.settings.target, list) and len(plan.settings.target) != len(plan.texts):
        raise InputError(f"{len(plan.settings.target)} targets for {len(plan.texts)} texts: name one class per text.")
    for method in dict.fromkeys(row.method for row in plan.rows):
        check(plan.model, method)
    has_rationales = bool(plan.rationales)
    check_metrics(plan.model, [*plan.metrics, *choosers], has_rationales=has_rationales, texts=len(plan.texts))
    if has_rationales and len(plan.rationales) != len(plan.texts):
        raise InputError(f"{len(plan.texts)} texts but rationales of {len(plan.rationales)}: give one entry per text.")
    return caution_of_texts(_unknown_shares(plan))


def _unknown_shares(plan: Plan) -> list[float]:
    """Of each text the share of its tokens that the model's vocabulary lacks. InputError for one that cannot be read.

    One text at a time: a large data set's tokens need not be in memory together.
    """
    bounds = {row.label: most for row in plan.rows if (most := row.method.most_units) is not None}
    shares = []
    for number, text in enumerate(plan.texts, start=1):
        try:
            encoding = plan.model.encode([text], plan.settings.unit, plan.settings.truncate)
        except InputError as error:
            raise type(error)(f"text {number} of {len(plan.texts)}: {error}") from None
        [units] = encoding.unit_counts
        for label, most in bounds.items():
            if units > most:
                raise InputError(f"text {number} of {len(plan.texts)} {_too_long(label, units, most)}")
        shares.append(encoding.unknown(plan.model.unknown_id)[0].share)
    return shares


def allowed(model: LanguageModel, methods: Sequence[Method], units: int) -> tuple[list[Method], dict[str, str]]:
    """The methods that can explain texts of at most so many units with the model, and why the others cannot."""
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
    return f"has {units} units, and {label} takes at most {most}: leave it out, raise its limit, or take coarser units."


def execute(plan: Plan, found: Run, progress: bool | Advance = True, shard: Shard | None = None) -> None:
    """Do the run's missing work, or a shard's share of it, by raison.jobs.engine."""

    def make() -> list[Job]:
        if shard is not None and shard.count > 1:
            found.refresh()
        return jobs_of(lambda: plan, found)

    do(make, shard, progress)


def jobs_of(plan: Callable[[], Plan], found: Run, name: str = "") -> list[Job]:
    """What a run consists of: a chunk of texts at a time, then the metrics that judge all texts together.

    `plan` is asked for when something is to be done, so that a model need not be there for what is finished; `name`
    tells the runs of one piece of work apart.
    """
    texts, rows = found.header["texts"], found.header["rows"]
    # Rows that are there whole came from another run; a chunk that was interrupted is done again with all others.
    left = [row for row in rows if not _is_done(row, found, range(texts))]
    jobs = []
    for start in range(0, texts, CHUNK):
        numbers = range(start, min(start + CHUNK, texts))
        jobs.append(
            Job(
                f"{name} texts {start}",
                "compare",
                partial(_do_chunk, plan, found, [row["label"] for row in left], numbers),
                partial(_are_done, left, found, numbers),
                cost=len(numbers) * sum(len(row["seeds"]) for row in rows),
                size=len(numbers),
            )
        )
    grouped = [metric["label"] for metric in found.header["metrics"] if metric["grouped"]]
    for key in [(row["label"], seed, metric) for metric in grouped for row in rows for seed in row["seeds"]]:
        title = "metrics of all texts"
        do_groups, is_done = partial(_do_groups, plan, found, *key), partial(found.has_groups, *key)
        jobs.append(Job(f"{name} {key}", title, do_groups, is_done, last=True))
    return jobs


def _do_chunk(plan: Callable[[], Plan], found: Run, labels: Sequence[str], numbers: range, told: Told) -> None:
    whole = plan()
    found.add(_chunk(replace(whole, rows=tuple(row for row in whole.rows if row.label in labels)), numbers))
    told(len(numbers))


def _do_groups(plan: Callable[[], Plan], found: Run, row: str, seed: int, metric: str, told: Told) -> None:
    whole = plan()
    judge = next(one for one in whole.metrics if label_of(one) == metric)
    assert isinstance(judge, GroupMetric)
    found.add_groups(row, seed, metric, measure_groups(whole.model, found.explanations(row, seed), judge))
    told(1)


def _is_done(row: Mapping[str, Any], found: Run, numbers: range) -> bool:
    return all(found.is_done(row["label"], seed, numbers) for seed in row["seeds"])


def _are_done(rows: Sequence[Mapping[str, Any]], found: Run, numbers: range) -> bool:
    return all(_is_done(row, found, numbers) for row in rows)


def _settings(plan: Plan, numbers: Sequence[int]) -> Settings:
    """The settings for some of the texts."""
    target = plan.settings.target
    return replace(plan.settings, target=[target[i] for i in numbers]) if isinstance(target, list) else plan.settings


def _chunk(plan: Plan, numbers: Sequence[int]) -> list[tuple[Record, Explanation]]:
    """All rows on some texts; explanations of all rows are judged together."""
    batch = prepare(plan.model, [plan.texts[number] for number in numbers], _settings(plan, numbers))
    marks = [plan.rationales[number] for number in numbers] if plan.rationales else ()
    jobs = [(row, seed) for row in plan.rows for seed in row.seeds]
    # What is chosen comes first, then what has several parts: all others find their maps in the batch.
    found = _chosen(batch, plan, marks)
    for row, seed in sorted(jobs, key=lambda job: -len(job[0].method.parts)):
        if row.chooser is None:
            found[row.label, seed] = run(_seeded(batch, seed), row.method)
    explanations = [e for row, seed in jobs for e in found[row.label, seed]]
    scores = measure(batch, explanations, plan.judges, marks)
    keys = [(row.label, seed, number) for row, seed in jobs for number in numbers]
    return [
        (Record(*key, tuple(values), costs_of(e), e.target, _predicted(e), len(e.units)), e)
        for key, e, values in zip(keys, explanations, scores, strict=True)
    ]


def _predicted(explanation: Explanation) -> str:
    """The prediction as a record states it: never a part of the text, as an answer is."""
    return explanation.prediction if explanation.answer is None else explanation.target


def _chosen(batch: Batch, plan: Plan, marks: Annotations) -> dict[tuple[str, int], list[Explanation]]:
    """The rows whose maps a metric chooses, by label and seed: all candidates are measured by all metrics in one go."""
    rows = [row for row in plan.rows if row.chooser is not None]
    if not rows:
        return {}
    offering = list(dict.fromkeys((row.method, seed) for row in rows for seed in row.seeds))
    offers = [run_candidates(_seeded(batch, seed), method) for method, seed in offering]
    metrics = list(dict.fromkeys(row.chooser for row in rows if row.chooser is not None))
    best = dict(zip(offering, best_maps(batch, offers, metrics, marks), strict=True))
    return {
        (row.label, seed): best[row.method, seed][metrics.index(row.chooser)]
        for row in rows
        for seed in row.seeds
        if row.chooser is not None
    }


def _seeded(batch: Batch, seed: int) -> Batch:
    """The batch under another seed of random methods; what was computed is shared."""
    return replace(batch, settings=replace(batch.settings, seed=seed))
