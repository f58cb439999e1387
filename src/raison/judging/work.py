"""The jobs of a comparison, for raison.jobs.engine: chunks of texts, then metrics over all texts."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial

from raison.core.draws import generator_for
from raison.core.metric import GroupMetric
from raison.core.registry import label_of
from raison.core.results.explanation import Explanation
from raison.explaining.attribution import run, run_candidates
from raison.explaining.batch import Batch, prepare
from raison.explaining.measuring import Annotations, measure
from raison.explaining.returned_values import check_counts
from raison.explaining.selection import best_maps
from raison.jobs.engine import WHOLE, Job, Shard, do
from raison.judging.evaluate import KeptOfGroups, costs_of, measure_groups
from raison.judging.plan import Plan
from raison.progress import Advance, ProgressCallback
from raison.runs.headers import RowHead
from raison.runs.reuse import taken_over
from raison.runs.run import Record, Run


def execute(plan: Plan, comparison: Run, progress: bool | Advance = True) -> None:
    """Do the run's missing work in this process."""
    do(listed(plan, comparison), progress)


def listed(plan: Plan, comparison: Run, shard: Shard = WHOLE) -> list[Job]:
    """A run's jobs in their current state; if other processes have shares, the folder is read again."""
    if shard != WHOLE:
        comparison.refresh()
    return jobs_of(lambda: plan, comparison)


def jobs_of(plan: Callable[[], Plan], comparison: Run, name: str = "") -> list[Job]:
    """The jobs of a run: chunks of texts in random order, then the metrics of all texts together.

    Data are often sorted by label: in a fixed random order, what an unfinished run has is a sample of its texts.
    `plan` is called only if something is missing, so that finished work needs no model. `name` distinguishes the runs
    of one piece of work.
    """
    header, texts, jobs = comparison.header, comparison.header.texts, []
    # Complete rows came from another run; an interrupted chunk is repeated with all other rows.
    left = [row for row in header.rows if not _are_done(row.keys, comparison, range(texts))]
    copied = {} if comparison.folder is None else taken_over(comparison.folder)
    missing, keys = _Missing(comparison, left, copied), [key for row in left for key in row.keys]
    starts = range(0, texts, header.together)
    for place in generator_for("order of texts", texts).permutation(len(starts)):
        start = starts[place]
        numbers = range(start, min(start + header.together, texts))
        jobs.append(
            Job(
                f"{name} texts {start}",
                "compare",
                partial(_do_chunk, plan, comparison, missing, numbers),
                partial(_are_done, keys, comparison, numbers),
                cost=len(numbers) * len(header.keys),
                size=len(numbers),
            )
        )
    for metric in header.grouped:
        of_groups = _GroupWork(plan, comparison, metric)
        for row, seed in header.keys:
            measure_row, is_done = partial(of_groups.do, row, seed), partial(comparison.has_groups, row, seed, metric)
            title = "metrics of all texts"
            jobs.append(Job(f"{name} {(row, seed, metric)}", title, measure_row, is_done, last=True))
    return jobs


@dataclass(frozen=True, slots=True)
class _Missing:
    """The rows of a run that are not complete. `copied` has the texts of rows that were taken from runs on fewer."""

    run: Run
    rows: Sequence[RowHead]
    copied: Mapping[str, Set[int]]

    def of(self, numbers: Sequence[int]) -> dict[tuple[int, ...], set[str]]:
        """The texts of a chunk to explain together, and the rows that lack them: all but what was copied, whatever is
        written of the chunk, so that a repeated chunk has the same batches."""
        rows: dict[tuple[int, ...], set[str]] = {}
        for row in self.rows:
            known = self.copied.get(row.label, frozenset())
            left = tuple(n for n in numbers if n not in known or not _are_done(row.keys, self.run, [n]))
            if left:
                rows.setdefault(left, set()).add(row.label)
        return rows


def _do_chunk(
    plan: Callable[[], Plan], comparison: Run, missing: _Missing, numbers: Sequence[int], advance: ProgressCallback
) -> None:
    whole = plan()
    for left, labels in missing.of(numbers).items():
        rows = tuple(row for row in whole.rows if row.label in labels)
        comparison.add(_chunk(replace(whole, rows=rows), left))
    advance(len(numbers))


@dataclass(frozen=True, slots=True)
class _GroupWork:
    """One metric of many texts together, for every row and seed. `kept` is what it makes of the texts alone."""

    plan: Callable[[], Plan]
    run: Run
    metric: str
    kept: KeptOfGroups = field(default_factory=dict)

    def do(self, row: str, seed: int, advance: ProgressCallback) -> None:
        """The values of one row's explanations."""
        plan = self.plan()
        judge = next(one for one in plan.metrics if label_of(one) == self.metric)
        assert isinstance(judge, GroupMetric)
        values = measure_groups(plan.model, self.run.explanations(row, seed), judge, self.kept)
        # Also those of an earlier process.
        others = (groups for (_, _, metric), groups in self.run.groups.items() if metric == self.metric)
        check_counts(values, next(others, values), judge)
        self.run.add_groups(row, seed, self.metric, values)
        if all(self.run.has_groups(*key, self.metric) for key in self.run.header.keys):
            # Nobody reads the texts again.
            self.kept.clear()
        advance(1)


def _are_done(keys: Sequence[tuple[str, int]], comparison: Run, numbers: Sequence[int]) -> bool:
    return all(comparison.is_done(*key, numbers) for key in keys)


def _chunk(plan: Plan, numbers: Sequence[int]) -> list[tuple[Record, Explanation]]:
    """All rows on some texts; explanations of all rows are judged together."""
    batch = prepare(plan.model, [plan.texts[number] for number in numbers], plan.settings_of(numbers))
    batch = replace(batch, threshold=plan.threshold)
    marks = [plan.rationales[number] for number in numbers] if plan.rationales else ()
    jobs = [(row, seed) for row in plan.rows for seed in row.seeds]
    # Selected rows come first, then methods with several parts: the others find their maps in the batch.
    by_row = _chosen(batch, plan, marks)
    for row, seed in sorted(jobs, key=lambda job: -len(job[0].method.parts)):
        if row.chooser is None:
            by_row[row.label, seed] = run(batch.seeded(seed), row.method)
    explanations = [e for row, seed in jobs for e in by_row[row.label, seed]]
    scores = measure(batch, explanations, plan.judges, marks)
    keys = [(row.label, seed, number) for row, seed in jobs for number in numbers]
    return [
        (Record(*key, tuple(values), costs_of(e), e.target, _predicted(e), len(e.units)), e)
        for key, e, values in zip(keys, explanations, scores, strict=True)
    ]


def _predicted(explanation: Explanation) -> str:
    """The prediction as a record states it; never an answer, which is part of the text."""
    return explanation.prediction if explanation.answer is None else explanation.target


def _chosen(batch: Batch, plan: Plan, marks: Annotations) -> dict[tuple[str, int], list[Explanation]]:
    """The rows with selected maps, by label and seed; all metrics evaluate all candidates together."""
    rows = [row for row in plan.rows if row.chooser is not None]
    if not rows:
        return {}
    offering = list(dict.fromkeys((row.method, seed) for row in rows for seed in row.seeds))
    offers = [run_candidates(batch.seeded(seed), method) for method, seed in offering]
    metrics = list(dict.fromkeys(row.chooser for row in rows if row.chooser is not None))
    best = dict(zip(offering, best_maps(batch, offers, metrics, marks), strict=True))
    return {
        (row.label, seed): best[row.method, seed][metrics.index(row.chooser)]
        for row in rows
        for seed in row.seeds
        if row.chooser is not None
    }
