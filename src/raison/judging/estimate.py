"""The cost of a comparison, estimated before it runs."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import median

from raison.core.capabilities.answer_lengths import AnswerLengths
from raison.core.capabilities.asked_again import AskedAgain, Price
from raison.core.capabilities.other_wordings import OtherWordings
from raison.core.capabilities.rules import BackwardRules
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Spans
from raison.core.inputs.unit import Side, Unit
from raison.core.method import Cost, Method, Property
from raison.core.metric import Metric, Need
from raison.core.model import LanguageModel, asked_of
from raison.explaining import bounds
from raison.explaining.answers import Answers, QuestionRows, judged
from raison.explaining.attribution import run_candidates
from raison.explaining.batch import Batch, prepare
from raison.explaining.bounds import TextSize, blank_explanation
from raison.explaining.given_texts import InputOptions, Texts, read_names
from raison.explaining.measuring import Metrics, create_metrics
from raison.explaining.ranking import Ranking
from raison.explaining.settings import Settings
from raison.explaining.sources.rewordings import worded
from raison.explaining.token_by_token import looks_inside
from raison.judging.evaluate import default_metrics
from raison.judging.plan import Parts, Plan, PlannedRow, distinct_parts, of_predictions, plan_rows
from raison.methods import CATALOGUE
from raison.models.adapters.checks.relevance_cost import relevance_cost
from raison.models.adapters.checks.throughput import Speed, measure_speed
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.statements import Statements
from raison.models.adapters.writing.writer import Writer

PROBED = 8
"""Maximum number of texts for measuring the model's speed."""

PROBED_TOKENS = 512
"""Maximum number of tokens in these texts; more would take minutes."""

LONG = 2.0
"""Seconds from which the run of a method that re-runs only some layers is timed once."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Passes of single sequences over all texts, and estimates of their time and memory.

    These are upper bounds: keeps that methods and metrics share are evaluated once, and a pass of a method that re-runs
    only some layers (Property.PARTIAL) counts as a whole one, although its time is measured. `forwards` and `backwards`
    are given by row of the table: the passes of each alone, with all seeds, and with the choosing if a metric selects
    the row's maps. `metric_forwards` and `metric_backwards` are the passes that the metrics add for all rows together.
    `total_forwards` and `total_backwards` are those of all rows and metrics. They and `seconds` count work that several
    rows share, such as the maps that metrics choose from, once. With target="each", `texts` counts the explained
    labels of all texts, as in a Comparison.
    """

    texts: int
    mean_units: float
    mean_tokens: float
    forwards: dict[str, int]
    backwards: dict[str, int]
    metric_forwards: int
    total_forwards: int
    total_backwards: int
    seconds: float
    model_bytes: int
    batch_bytes: int
    metric_backwards: int = 0
    requests: int = 0
    """For a model behind a server, with their tokens and cost. Its time is not estimated."""
    request_tokens: int = 0
    request_cost: float = 0.0


def estimate(
    model: LanguageModel | Writer,
    texts: Texts | Sequence[Ranking] | QuestionRows | Answers,
    methods: str | Method | Iterable[str | Method],
    metrics: Metrics | None,
    settings: Settings | None = None,
    *,
    units: Sequence[Spans] | Side | None = None,
    text: str | list[str] | None = None,
    language: str | None = None,
    threshold: float | None = None,
) -> Estimate:
    """Count the passes of a comparison, and time a few to estimate its duration.

    Tokenizes every text; runs the model for a few seconds. A language model that writes answers first where the rows
    give no answer. With target="each", and for entities, the model first predicts every text, which takes a pass for
    each. `units`, `text`, `language` and `threshold` are those of `compare`. Raises what `compare` raises for the same
    texts and threshold; targets are checked where they are explained.
    """
    settings = settings or Settings()
    # Spans replace the settings' unit, whose default nobody chose.
    unit = settings.unit if units is None or isinstance(units, str) else None
    given = judged(model, texts, InputOptions(unit, units, text, language), truncate=settings.truncate)
    settings = replace(settings, unit=given.unit, of=asked_of(given.model, settings.of))
    rows = plan_rows([CATALOGUE.create(method) for method in read_names(methods)], (), (settings.seed,))
    chosen = create_metrics(default_metrics(given.model) if metrics is None else metrics)
    plan = Plan(given.model, given.texts, given.gold, rows, tuple(chosen), settings, "")
    return estimate_plan(of_predictions(plan, threshold))


def estimate_plan(plan: Plan, speed: Speed | None = None) -> Estimate:
    """The estimate of a planned comparison: with its seeds, its rows chosen by metrics and its group metrics.

    `speed` is the model's, if known.
    """
    encoding = plan.model.encode(list(plan.texts), plan.settings.unit, plan.settings.truncate)
    texts = _PlannedText.read(encoding, BackwardPasses.read(plan, encoding))
    speed = speed_of(plan, encoding) if speed is None else speed
    costs = {row.label: [_row_cost(row, text) for text in texts] for row in plan.rows}
    judging = [_judging_cost(plan, text) for text in texts]
    parts = distinct_parts(plan.rows)
    measured = {key: part for key, part in parts.items() if Property.PARTIAL in part.properties}
    counted = {key: part for key, part in parts.items() if key not in measured}
    seconds, work = _partial_seconds(plan, encoding, measured) * sum(encoding.lengths), []
    for text, judged_cost in zip(texts, judging, strict=True):
        cost = _sum([judged_cost, _parts_cost(counted, text), _choosing_cost(plan.rows, text.units)])
        seconds += speed.seconds(cost, text.length)
        work.append(_sum([cost, _parts_cost(measured, text)]))
    again = _wordings_work(plan, encoding)
    seconds += sum(speed.seconds(cost, length) for length, cost in again)
    prices = _prices(plan.model, encoding, work)
    metrics = _sum([*judging, *(cost for _, cost in again)])
    total = _sum([*work, *(cost for _, cost in again)])
    totals = {label: _sum(of_texts) for label, of_texts in costs.items()}
    return Estimate(
        texts=len(plan.texts),
        mean_units=sum(encoding.unit_counts) / len(plan.texts),
        mean_tokens=sum(encoding.lengths) / len(plan.texts),
        forwards={label: cost.forwards for label, cost in totals.items()},
        backwards={label: cost.backwards for label, cost in totals.items()},
        metric_forwards=metrics.forwards,
        total_forwards=total.forwards,
        total_backwards=total.backwards,
        seconds=seconds,
        model_bytes=speed.model_bytes,
        batch_bytes=speed.batch_bytes,
        metric_backwards=metrics.backwards,
        requests=sum(price.requests for price in prices),
        request_tokens=sum(price.tokens for price in prices),
        request_cost=sum(price.cost for price in prices),
    )


def speed_of(plan: Plan, encoding: Encoding) -> Speed:
    """Measured on texts of typical length. To a server nothing is sent.

    Where a method asks for the gradients of a statement's tokens, these are those of one token.
    """
    model = plan.model
    if model.offers(AskedAgain):
        return Speed(0.0, 0.0, 0, 0)
    speed = measure_speed(model, encoding.select(probes(encoding)))  # type: ignore[arg-type]
    looking = dict.fromkeys(row.method for row in plan.rows if looks_inside(model, row.method))
    if not isinstance(model, Statements) or not looking:
        return speed
    assert isinstance(model.reader, Classifier), "only models behind a server have another reader"
    ruled = [method for method in looking if BackwardRules in method.needs]
    longest, written = max(encoding.lengths), max(BackwardPasses.read(plan, encoding).lengths)
    speeds = [relevance_cost(model, method, longest, written) for method in ruled]
    if len(ruled) < len(looking):
        speeds.append(measure_speed(model.reader, model.probe))
    return replace(
        speed,
        backward=max(one.backward for one in speeds),
        batch_bytes=max(speed.batch_bytes, *(one.batch_bytes for one in speeds)),
    )


def _prices(model: LanguageModel, encoding: Encoding, costs: Sequence[Cost]) -> list[Price]:
    """The texts' requests to a server and their cost; nothing for other models."""
    if not model.offers(AskedAgain):
        return []
    each = model.ask(AskedAgain).prices(encoding)
    return [price.times(cost.forwards) for price, cost in zip(each, costs, strict=True)]


def probes(encoding: Encoding) -> list[int]:
    """Texts of typical length, for measuring a model's speed."""
    middle = median(encoding.lengths)
    nearest = sorted(range(len(encoding)), key=lambda text: abs(encoding.lengths[text] - middle))
    tokens = accumulate(encoding.lengths[text] for text in nearest[:PROBED])
    fitting = [text for text, whole in zip(nearest, tokens, strict=False) if whole <= PROBED_TOKENS]
    return fitting or nearest[:1]


@dataclass(frozen=True, slots=True)
class BackwardPasses:
    """The backward passes at each point of each text: one, or one for every token of a statement."""

    model: LanguageModel
    lengths: Sequence[int]

    @classmethod
    def read(cls, plan: Plan, encoding: Encoding) -> "BackwardPasses":
        model = plan.model
        if not isinstance(model, Statements):
            return cls(model, ())
        read = model.choosing.settled(encoding, plan.settings.target).encoding
        return cls(model, model.ask(AnswerLengths).answer_lengths(read))

    def of(self, method: Method, text: int) -> int:
        return self.lengths[text] if looks_inside(self.model, method) else 1


@dataclass(frozen=True, slots=True)
class _PlannedText:
    """A text by its number, with its units and the number of its tokens."""

    number: int
    units: tuple[Unit, ...]
    length: int
    backwards: BackwardPasses

    @classmethod
    def read(cls, encoding: Encoding, backwards: BackwardPasses) -> "list[_PlannedText]":
        """All texts of an encoding."""
        sizes = zip(encoding.units, encoding.lengths, strict=True)
        return [cls(number, units, length, backwards) for number, (units, length) in enumerate(sizes)]

    def cost(self, method: Method) -> Cost:
        """An upper bound of the passes of a method, or of a part of one, under one seed."""
        size = TextSize(len(self.units), self.length)
        return bounds.of_tokens(method, size, self.backwards.of(method, self.number))


def _row_cost(row: PlannedRow, text: "_PlannedText") -> Cost:
    """The cost of one text for one row with all seeds; a selection evaluates every candidate map."""
    looking = [] if row.chooser is None else [_looking_cost(row, [row.chooser], text.units)]
    return _sum([text.cost(row.method).times(len(row.seeds)), *looking])


def _parts_cost(parts: Parts, text: "_PlannedText") -> Cost:
    """The cost of one text for methods' parts."""
    return _sum(text.cost(part).times(len(seeds)) for (_, seeds), part in parts.items())


def _choosing_cost(rows: Sequence[PlannedRow], units: tuple[Unit, ...]) -> Cost:
    """The cost of one text for the choice of maps; keeps are shared by the metrics that choose from one method's."""
    chosen = [row for row in rows if row.chooser is not None]
    return _sum(
        _looking_cost(row, [other.chooser for other in chosen if other.method == row.method and other.chooser], units)
        for row in {row.method: row for row in chosen}.values()
    )


def _partial_seconds(plan: Plan, encoding: Encoding, parts: Parts) -> float:
    """The seconds per token of parts that re-run only some layers, from one run of each."""
    if not parts:
        return 0.0
    probe = probes(encoding)[0]
    batch = prepare(plan.model, [plan.texts[probe]], replace(plan.settings, target=None))
    seconds = 0.0
    for (_, seeds), part in parts.items():
        once = _timed(batch, part)
        # The first use of a layer includes a check, which counts in a short run only.
        seconds += (once if once > LONG else _timed(batch, part)) * len(seeds)
    return seconds / encoding.lengths[probe]


def _timed(batch: Batch, part: Method) -> float:
    started = time.perf_counter()
    run_candidates(batch.afresh(), part)
    return time.perf_counter() - started


def _looking_cost(row: PlannedRow, choosers: Sequence[Metric], units: tuple[Unit, ...]) -> Cost:
    """The cost of one text for metrics to see every map that a row's method offers under each seed."""
    return bounds.of_choice(row.method, choosers, units).times(len(row.seeds))


def _judging_cost(plan: Plan, text: _PlannedText) -> Cost:
    """The cost of the metrics on one text, with the whole text and the removal of everything."""
    judges = plan.judges
    keeps, shifts = bounds.count_keeps(judges, text.units), _shifts(judges, text.units)
    # The texts of a group are read once for all rows.
    costs = [Cost(2 + sum(Need.HIDDEN_STATES in metric.needs for metric in plan.metrics))]
    for row in plan.rows:
        costs.append(Cost(keeps * len(row.seeds)))
        # A selected map is not explained again; see raison.explaining.evidence.
        if row.chooser is None:
            costs.append(text.cost(row.method).times(shifts * len(row.seeds)))
    return _sum(costs)


def _wordings_work(plan: Plan, encoding: Encoding) -> list[tuple[int, Cost]]:
    """Tokens of each other wording that metrics ask for, and what explaining it with every unselected row takes."""
    works = []
    for text, units in zip(encoding.texts, encoding.units, strict=True):
        stand_in = replace(blank_explanation(units), text=text, unit=encoding.unit, outputs=plan.model.outputs)
        model, texts_of = worded(plan.model, [one for metric in plan.judges for one in metric.rewordings(stand_in)])
        if texts_of and encoding.spans is None:
            wordings = model.encode(
                list(dict.fromkeys(texts_of.values())), encoding.unit, not model.offers(OtherWordings)
            )
            # At most the whole answer is explained.
            answers = BackwardPasses.read(
                replace(plan, model=model, settings=replace(plan.settings, target=None)), wordings
            )
            for wording in _PlannedText.read(wordings, answers):
                costs = [wording.cost(one.method).times(len(one.seeds)) for one in plan.rows if one.chooser is None]
                # One more pass decides whether the wording counts.
                works.append((wording.length, _sum([Cost(1), *costs])))
    return works


def _sum(costs: Iterable[Cost]) -> Cost:
    return sum(costs, Cost())


def _shifts(metrics: Sequence[Metric], units: tuple[Unit, ...]) -> int:
    """Different shifts of the embeddings under which a text is explained again."""
    return len({shift for metric in metrics for shift in metric.shifts(blank_explanation(units))})
