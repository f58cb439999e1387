"""Methods side by side on the same texts, resumable."""

import hashlib
import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

from raison._version import __version__
from raison.attribution import Batch, Settings, check, check_model, prepare, run, run_candidates
from raison.core.errors import InputError, RaisonError, UnsupportedError
from raison.core.explanation import Explanation
from raison.core.method import Method, Property
from raison.core.metric import GroupMetric, Metric
from raison.core.model import LanguageModel, asked_of
from raison.core.registry import label_of
from raison.core.results import Comparison
from raison.core.target import TargetSpec
from raison.core.unit import Granularity, Text
from raison.core.unknown import caution_of_texts
from raison.evaluate import (
    Annotations,
    AnyMetric,
    check_metrics,
    costs_of,
    create_metrics,
    default_metrics,
    info_of,
    measure,
    measure_groups,
)
from raison.jobs.folder import COMPARISON, refuse_others, working_in
from raison.jobs.identity import DATA, IDENTITY, SETTINGS, digest_of
from raison.methods import CATALOGUE
from raison.models.derived.identity import files_identity, identity_of
from raison.progress import Advance, progress_bar
from raison.runs.run import CAUTIONS, OUTPUTS, SCHEMA, Record, Run, check_same, open_run
from raison.runs.table import comparison
from raison.select import CONTROL, best_maps, check_selection

DEFAULT_METHODS = ("integrated_gradients", "kernel_shap", "lime", "occlusion")

CHUNK = 16
"""Texts that are explained, judged and written together. Fixed, so that a resumed run repeats the same batches."""

_LIBRARIES = ("torch", "transformers", "numpy")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: a method, under each of its seeds, its maps chosen by a metric or not."""

    label: str
    method: Method
    seeds: tuple[int, ...]
    chooser: Metric | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All that decides the numbers."""

    model: LanguageModel
    texts: tuple[Text, ...]
    rationales: Annotations
    rows: tuple[Row, ...]
    metrics: tuple[AnyMetric, ...]
    settings: Settings
    data: str

    @property
    def judges(self) -> list[Metric]:
        """The metrics of single texts."""
        return [metric for metric in self.metrics if isinstance(metric, Metric)]


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
) -> Comparison:
    """Explain every text with every method and judge the explanations by every metric.

    A row of `random` scores is always there. Each prediction and each perturbed text is computed once for all
    methods and metrics together.

    Args:
        target: as in `explain`; a list names each text's class, such as its true one.
        seed: of random methods; several seeds run these methods once with each, and average.
        rationales: what should matter in each text, for the metrics that need it; see `evaluate`.
        select: metrics that choose each text's map among those a method offers. Every method that offers several gets
            one more row per metric, and so does `random` with as many draws: the control for choosing.
        out: a folder that keeps every explanation and score; a run that was interrupted goes on from there, and gives
            the same table as one that was not. It must be empty, or hold the same run.
        data: what the texts are called in the table.
        progress: a progress bar on stderr, or a function that is told of finished texts.
        The other arguments are those of `explain` and `evaluate`.

    Raises:
        InputError, UnknownNameError, UnsupportedError: before anything runs.
        DataError: a folder that holds another run, or no space left (what was written stays usable).
    """
    check_model(model)
    seeds = (seed,) if isinstance(seed, int) else tuple(seed)
    if not texts or isinstance(texts, str):
        raise InputError("texts to compare on are a list of at least one text.")
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError("seed is a number, or a list of different ones.")
    settings = Settings(unit, target, asked_of(model, of), removal, seeds[0], truncate, precision)
    choosers = create_metrics(select)
    rows = plan_rows([CATALOGUE.create(method) for method in methods], choosers, seeds)
    chosen = tuple(create_metrics(default_metrics(model) if metrics is None else metrics))
    marks = () if rationales is None else tuple(tuple(one) for one in rationales)
    plan = Plan(model, tuple(texts), marks, rows, chosen, settings, data)
    if out is None:
        found = Run(header_of(plan) | {CAUTIONS: check_plan(plan, choosers)})
        execute(plan, found, progress)
        return comparison(found)
    return _compared(plan, choosers, Path(out), progress)


def _compared(plan: Plan, choosers: Sequence[AnyMetric], folder: Path, progress: bool | Advance) -> Comparison:
    """In a folder, which is refused before it is touched."""
    refuse_others(folder, COMPARISON)
    header = header_of(plan)
    if (folder / COMPARISON.marker).exists():
        # The texts were checked when the run began.
        check_same(folder, header)
    else:
        header[CAUTIONS] = check_plan(plan, choosers)
    with working_in(folder, COMPARISON):
        found = open_run(header, folder)
        execute(plan, found, progress)
        return comparison(found)


def begin(plan: Plan, header: dict[str, object], folder: Path) -> Run:
    """The run of a plan within larger work, to go on with; a new one notes what has to be said beside its results."""
    if not (folder / COMPARISON.marker).exists():
        header = header | {CAUTIONS: caution_of_texts(_unknown_shares(plan))}
    return open_run(header, folder)


def plan_rows(methods: list[Method], choosers: Sequence[AnyMetric], seeds: tuple[int, ...]) -> tuple[Row, ...]:
    """The table's rows: the methods, random if it is missing, and what each metric selects, with its controls."""
    random = CATALOGUE.create("random")
    plain = methods if random in methods else [*methods, random]
    labels = [label_of(method) for method in plain]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"the method {label} is named twice.")
    rows = [Row(label_of(method), method, _seeds_of(method, seeds)) for method in plain]
    check_selection(choosers, plain)
    offering = [method for method in plain if method.maps > 1]
    controls = [CATALOGUE.create(CONTROL.format(method.maps)) for method in offering]
    for metric in choosers:
        for method in dict.fromkeys([*offering, *controls]):
            label = f"{label_of(method)} by {label_of(metric)}"
            rows.append(Row(label, method, _seeds_of(method, seeds), metric))  # type: ignore[arg-type]
    return tuple(rows)


def check_plan(plan: Plan, choosers: Sequence[AnyMetric] = ()) -> tuple[str, ...]:
    """Before hours of work, and before a folder is touched: whatever cannot be done is refused now.

    Returns what can be done but has to be said beside the results.
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
    """Those of the methods that can explain texts of at most so many units with the model, and why not the others."""
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


def execute(plan: Plan, found: Run, progress: bool | Advance = True) -> None:
    """Do what the run lacks, a chunk of texts at a time, then the metrics that judge all texts together."""
    # Rows that are there whole came from another run; a chunk that was interrupted is done again with all others.
    everything = range(len(plan.texts))
    left = replace(plan, rows=tuple(row for row in plan.rows if not _is_done(row, found, everything)))
    with progress_bar("compare", len(plan.texts), progress) as advance:
        for start in range(0, len(plan.texts), CHUNK):
            numbers = range(start, min(start + CHUNK, len(plan.texts)))
            if not all(_is_done(row, found, numbers) for row in left.rows):
                found.add(_chunk(left, numbers))
            advance(len(numbers))
    grouped = [metric for metric in plan.metrics if isinstance(metric, GroupMetric)]
    jobs = [(row.label, seed, metric) for metric in grouped for row in plan.rows for seed in row.seeds]
    with progress_bar("metrics of all texts", len(jobs), progress if isinstance(progress, bool) else False) as advance:
        for label, seed, metric in jobs:
            if (label, seed, label_of(metric)) not in found.groups:
                values = measure_groups(plan.model, found.explanations(label, seed), metric)
                found.add_groups(label, seed, label_of(metric), values)
            advance(1)


def _is_done(row: Row, found: Run, numbers: range) -> bool:
    return all(found.is_done(row.label, seed, numbers) for seed in row.seeds)


def header_of(plan: Plan) -> dict[str, object]:
    """What makes two runs the same run."""
    header = {
        "schema": SCHEMA,
        "raison": __version__,
        "model": plan.model.name,
        "data": plan.data,
        "texts": len(plan.texts),
        "texts_sha256": _digest_of_texts(plan),
        "rows": [
            {
                "label": row.label,
                "method": label_of(row.method),
                "seeds": row.seeds,
                "selected_by": None if row.chooser is None else label_of(row.chooser),
            }
            for row in plan.rows
        ],
        "metrics": [asdict(info_of(metric)) for metric in plan.metrics],
        "settings": _stated(plan.settings),
        IDENTITY: _identity(plan),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}},
    }
    if plan.model.outputs != "classes":
        header[OUTPUTS] = plan.model.outputs
    # Through JSON: tuples and lists must not differ when it is compared with what a file holds.
    return dict(json.loads(json.dumps(header)))


def _digest_of_texts(plan: Plan) -> str:
    """Of the texts and what is marked in them, as one JSON list, a text at a time."""
    found = hashlib.sha256()
    for part in (plan.texts, _spans(plan)):
        found.update(b"[[" if part is plan.texts else b", [")
        for number, one in enumerate(part):
            found.update(
                ((", " if number else "") + json.dumps(one, ensure_ascii=False)).encode("utf-8", "surrogatepass")
            )
        found.update(b"]")
    found.update(b"]")
    return found.hexdigest()


def _identity(plan: Plan) -> dict[str, str]:
    """Of the model; of texts, marks and labels; of the rest, by the names that errors use."""
    target = plan.settings.target
    labels = target if isinstance(target, list) else None
    rows = [[row.label, label_of(row.method), row.seeds, row.chooser and label_of(row.chooser)] for row in plan.rows]
    metrics = [label_of(metric) for metric in plan.metrics]
    settings = asdict(replace(plan.settings, target=None if labels else target))
    return {
        **identity_of(plan.model),
        **files_identity(plan.model, [*(row.method for row in plan.rows), *plan.metrics]),
        DATA: digest_of([_digest_of_texts(plan), labels, plan.data]),
        SETTINGS: digest_of([rows, metrics, settings]),
    }


def _stated(settings: Settings) -> dict[str, object]:
    """As a header has them; the usual precision goes without saying, so that older folders can be continued."""
    stated = asdict(settings)
    return stated if settings.precision != "float32" else {k: v for k, v in stated.items() if k != "precision"}


def _spans(plan: Plan) -> Iterator[list[list[tuple[int, int, int]]]]:
    return ([[(s.start, s.end, s.segment) for s in one] for one in marks] for marks in plan.rationales)


def _settings(plan: Plan, numbers: Sequence[int]) -> Settings:
    """The settings for some of the texts."""
    target = plan.settings.target
    return replace(plan.settings, target=[target[i] for i in numbers]) if isinstance(target, list) else plan.settings


def _seeds_of(method: Method, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """A method that draws nothing gives the same under every seed."""
    return seeds if Property.RANDOM in method.properties else seeds[:1]


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
    """What a record says of the prediction: never a part of the text, as an answer is."""
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
