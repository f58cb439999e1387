"""The plan of a comparison, and its identity."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from raison._version import __version__
from raison.core.errors import InputError
from raison.core.inputs.parts import Given, written
from raison.core.method import Method, Property
from raison.core.metric import Metric
from raison.core.model import LanguageModel
from raison.core.note_names import EACH_FROM
from raison.core.registry import label_of, refuse_repeated
from raison.core.targets.choices import EACH
from raison.explaining.attribution import check
from raison.explaining.batch import BATCH
from raison.explaining.bounds import TextSize, of_text
from raison.explaining.each_prediction import each_target, sought_by, threshold_of, without_prediction
from raison.explaining.measuring import Annotations, AnyMetric
from raison.explaining.selection import CONTROL, check_selection
from raison.explaining.settings import Settings
from raison.jobs.identity import DATA, IDENTITY, SETTINGS, digest_of, versions
from raison.judging.evaluate import check_metrics, info_of
from raison.methods import CATALOGUE
from raison.models.derived.backbone import backbone_of
from raison.models.derived.identity import files_identity, identity_of
from raison.runs.headers import MOST_TOGETHER, RunHead
from raison.runs.run import CAUTIONS, OUTPUTS, SCHEMA, TEXT_NUMBERS, TOGETHER, head_of

_WORK = 3e12
"""Multiplications between two writes, about a minute of one core: what a kill may lose."""
_PROBED = 4
"""Number of texts whose lengths are looked at."""


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One row of the table: a method, under each of its seeds, its maps chosen by a metric or not."""

    label: str
    method: Method
    seeds: tuple[int, ...]
    chooser: Metric | None = None


Parts = Mapping[tuple[str, tuple[int, ...]], Method]
"""Parts of methods by name and seeds."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that determines the results."""

    model: LanguageModel
    texts: tuple[Given, ...]
    rationales: Annotations
    rows: tuple[PlannedRow, ...]
    metrics: tuple[AnyMetric, ...]
    settings: Settings
    data: str
    threshold: float | None = None
    """With target="each": the minimum probability of explained labels."""
    numbers: tuple[int, ...] = ()
    """With target="each": the number of each prediction's text."""
    left_out: str = ""
    """What to report of texts without a prediction, which were left out; "" if there were none."""

    @property
    def judges(self) -> list[Metric]:
        """The metrics of single texts."""
        return [metric for metric in self.metrics if isinstance(metric, Metric)]

    def of_texts(self, numbers: Sequence[int]) -> "Plan":
        """The same for some of the texts."""
        marks = tuple(self.rationales[number] for number in numbers) if self.rationales else ()
        texts = tuple(self.texts[number] for number in numbers)
        own = tuple(self.numbers[number] for number in numbers) if self.numbers else ()
        return replace(self, texts=texts, rationales=marks, settings=self.settings_of(numbers), numbers=own)

    def settings_of(self, numbers: Sequence[int]) -> Settings:
        """The settings for some of the texts."""
        return self.settings.of_texts(numbers)


def plan_rows(methods: list[Method], choosers: Sequence[AnyMetric], seeds: tuple[int, ...]) -> tuple[PlannedRow, ...]:
    """The table's rows: the methods, random if missing, and the rows that each metric selects, with their controls."""
    random = CATALOGUE.create("random")
    plain = methods if random in methods else [*methods, random]
    refuse_repeated("the method", map(label_of, plain))
    rows = [PlannedRow(label_of(method), method, _seeds_of(method, seeds)) for method in plain]
    check_selection(choosers, plain)
    offering = [method for method in plain if method.maps > 1]
    controls = [CATALOGUE.create(CONTROL.format(method.maps)) for method in offering]
    for metric in choosers:
        for method in dict.fromkeys([*offering, *controls]):
            label = f"{label_of(method)} by {label_of(metric)}"
            rows.append(PlannedRow(label, method, _seeds_of(method, seeds), metric))  # type: ignore[arg-type]
    return tuple(rows)


def distinct_parts(rows: Sequence[PlannedRow]) -> Parts:
    """The parts of all methods, each once for the seeds that it is run with: rows may share them."""
    return {(label_of(part), row.seeds): part for row in rows for part in row.method.parts}


def of_predictions(plan: Plan, given: float | None) -> Plan:
    """With target="each", the plan for every prediction in a text: repeated texts are evaluated once.

    Without it, texts in which the model finds no entity are left out. `given` is the caller's threshold. Takes a pass
    per text to find its labels or entities. Raises InputError for a threshold that does not apply, and if no prediction
    reaches it; UnsupportedError for a method that cannot run.
    """
    threshold = threshold_of(plan.model, plan.settings.target, given)
    each = plan.settings.target == EACH
    if not each and not sought_by(plan.model):
        return plan
    for method in dict.fromkeys(row.method for row in plan.rows):
        check(plan.model, method)
    return _of_each(plan, threshold) if each else _of_predicted(plan)


def _of_each(plan: Plan, threshold: float) -> Plan:
    """The plan for every prediction that reaches the threshold. Raises InputError if none does."""
    settings, targets = plan.settings, []
    for start in range(0, len(plan.texts), BATCH):
        targets += each_target(plan.model, plan.texts[start : start + BATCH], settings, threshold)
    texts = [text for text, labels in enumerate(targets) for _ in labels]
    if not texts:
        raise InputError(f"no prediction reaches {100 * threshold:g} % in any text: lower the threshold.")
    check_annotations(plan)
    return replace(
        plan,
        texts=tuple(plan.texts[text] for text in texts),
        rationales=tuple(plan.rationales[text] for text in texts) if plan.rationales else (),
        settings=replace(settings, target=[label for labels in targets for label in labels]),
        threshold=threshold,
        numbers=tuple(texts),
    )


def _of_predicted(plan: Plan) -> Plan:
    """The plan without texts in which the model predicts nothing. Raises InputError if none is left."""
    check_metrics(plan.model, plan.metrics, has_rationales=bool(plan.rationales), texts=len(plan.texts))
    check_annotations(plan)
    empty = set(without_prediction(plan.model, plan.texts, plan.settings))
    if not empty:
        return plan
    texts, verb, sought = len(plan.texts), "was" if len(empty) == 1 else "were", sought_by(plan.model)
    if len(empty) == texts:
        where = "the text" if texts == 1 else f"any of the {texts:,} texts"
        raise InputError(
            f"{plan.model.name} finds no {sought} in {where}: give texts in which it finds some, or name a span of "
            "each, target=[(start, end), ...]."
        )
    told = f"{len(empty):,} of {texts:,} texts {verb} left out, because the model finds no {sought} there"
    return replace(plan.of_texts([number for number in range(texts) if number not in empty]), left_out=told)


def check_annotations(plan: Plan) -> None:
    """Raise InputError unless there are rationales of all texts or of none."""
    if plan.rationales and len(plan.rationales) != len(plan.texts):
        raise InputError(
            f"{len(plan.texts)} texts but {len(plan.rationales)} entries of rationales: give one entry per text."
        )


def header_of(plan: Plan, cautions: Sequence[str] | None = None) -> RunHead:
    """The settings that identify a run, with the cautions to report with its results."""
    texts = _digest_of_texts(plan)
    header: dict[str, object] = {
        "schema": SCHEMA,
        "raison": __version__,
        "model": plan.model.name,
        "data": plan.data,
        "texts": len(plan.texts),
        "texts_sha256": texts,
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
        TOGETHER: texts_together(plan),
        "settings": _stated(plan.settings) | ({} if plan.threshold is None else {EACH_FROM: plan.threshold}),
        IDENTITY: _identity(plan, texts),
        "versions": versions(),
    }
    if plan.numbers:
        header[TEXT_NUMBERS] = plan.numbers
    if plan.model.outputs != "classes":
        header[OUTPUTS] = plan.model.outputs
    return head_of(header if cautions is None else header | {CAUTIONS: cautions})


def texts_together(plan: Plan) -> int:
    """How many texts are explained, evaluated and written together: fewer if they are long, or have many passes.

    At most 16, which fill batches. 16 for a function, whose cost is unknown.
    """
    backbone = backbone_of(plan.model)
    if backbone is None or not plan.texts:
        return MOST_TOGETHER
    probed = list(plan.texts)[:: max(1, len(plan.texts) // _PROBED)][:_PROBED]
    encoding = plan.model.tokenized(probed, plan.settings.unit, plan.settings.truncate)
    sizes = map(TextSize, encoding.unit_counts, encoding.lengths)
    work = [size.tokens * _passes(plan, size) for size in sizes]
    each = sum(parameter.numel() for parameter in backbone.core.parameters()) * sum(work) / len(work)
    return max(1, min(MOST_TOGETHER, int(_WORK / max(1.0, each))))


def _passes(plan: Plan, size: TextSize) -> int:
    """Forward passes of all methods on one text, as the estimate counts them; a backward pass counts twice."""
    costs = ((of_text(part, size), len(seeds)) for (_, seeds), part in distinct_parts(plan.rows).items())
    return sum(cost.work * seeds for cost, seeds in costs)


def _digest_of_texts(plan: Plan) -> str:
    """The digest of the texts and their rationales as one JSON list, built text by text."""
    digest = hashlib.sha256()
    for start, part in ((b"[[", map(written, plan.texts)), (b", [", _spans(plan))):
        digest.update(start)
        for number, one in enumerate(part):
            digest.update(
                ((", " if number else "") + json.dumps(one, ensure_ascii=False)).encode("utf-8", "surrogatepass")
            )
        digest.update(b"]")
    digest.update(b"]")
    return digest.hexdigest()


def _identity(plan: Plan, texts: str) -> dict[str, str]:
    """Digests of the model, of `texts` with marks and labels, and of the rest, by the names that errors use."""
    target = plan.settings.target
    labels = target if isinstance(target, list) else None
    rows = [[row.label, label_of(row.method), row.seeds, row.chooser and label_of(row.chooser)] for row in plan.rows]
    metrics = [label_of(metric) for metric in plan.metrics]
    settings = asdict(replace(plan.settings, target=None if labels else target))
    return {
        **identity_of(plan.model),
        **files_identity(plan.model, [*(row.method for row in plan.rows), *plan.metrics]),
        DATA: digest_of([texts, labels, plan.data]),
        SETTINGS: digest_of([rows, metrics, settings]),
    }


def _stated(settings: Settings) -> dict[str, object]:
    """The settings as a header states them, without the default precision, so that older folders can be continued."""
    stated = asdict(settings)
    return stated if settings.precision != "float32" else {k: v for k, v in stated.items() if k != "precision"}


def _spans(plan: Plan) -> Iterator[list[list[tuple[int, int, int]]]]:
    return ([[(s.start, s.end, s.segment) for s in one] for one in marks] for marks in plan.rationales)


def _seeds_of(method: Method, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """The seeds for a method; only the first one if it has no random draws."""
    return seeds if Property.RANDOM in method.properties else seeds[:1]
