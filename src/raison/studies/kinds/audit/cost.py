"""What an audit will take, before it runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from raison.core.method import Cost, Method, Property
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.explaining.attribution import Batch, prepare
from raison.explaining.evidence import BatchRow, is_harmless
from raison.explaining.measuring import create_metrics
from raison.judging.estimate import estimate_plan, probes
from raison.methods import CATALOGUE
from raison.metrics.harmless_change import HarmlessChange
from raison.models.adapters.blackbox.function import BlackBox
from raison.models.adapters.checks.throughput import Speed, measure_speed
from raison.models.adapters.classifier import Classifier
from raison.models.stack.blocks import find_blocks
from raison.studies.kinds.audit.results import FAITHFULNESS, HARMLESS
from raison.studies.kinds.audit.spec import Suite
from raison.text.edits import edit
from raison.trust.attack_cost import attack_seconds
from raison.trust.attacks import undifferentiable
from raison.trust.substitution import kept_tries

COUNTED = 4
"""Texts of which a first round of exchanged words is counted."""


@dataclass(frozen=True, slots=True)
class AuditCost:
    """Seconds of each part of an audit, by its name."""

    parts: dict[str, float]

    @property
    def seconds(self) -> float:
        """Of all parts."""
        return sum(self.parts.values())

    def text(self) -> str:
        """In words."""
        listed = ", ".join(f"{name} {_told(seconds)}" for name, seconds in self.parts.items())
        return f"about {_told(self.seconds)}: {listed}"

    def to_dict(self) -> dict[str, object]:
        """Plain values."""
        return {"seconds": self.seconds, "parts": dict(self.parts)}


def cost_of(model: LanguageModel, suite: Suite) -> AuditCost:
    """Count the passes of an audit that is planned, time some of them and a few steps of its attacks."""
    methods = tuple(CATALOGUE.create(name) for name in suite.methods)
    job = _Audited(model, suite, methods)  # type: ignore[arg-type]
    encoding = model.encode(list(suite.texts), suite.settings.unit, suite.settings.truncate)
    speed = measure_speed(job.model, encoding.select(probes(encoding)))
    lengths = [(len(units), length) for units, length in zip(encoding.units, encoding.lengths, strict=True)]
    parts = {
        "faithfulness": estimate_plan(suite.comparisons(model)[FAITHFULNESS], speed).seconds,
        "harmless changes": _changing(job, speed),
    }
    if isinstance(model, BlackBox):
        # Nothing else is tried on a function.
        return AuditCost(parts)
    return AuditCost(
        parts
        | {
            "randomised blocks": _randomising(job, lengths[: suite.plan.randomised], speed),
            "attacks": _attacking(job),
            "exchanged words": _exchanging(job, lengths, speed),
        }
    )


@dataclass(frozen=True, slots=True)
class _Audited:
    """What is audited."""

    model: Classifier
    suite: Suite
    methods: tuple[Method, ...]


def _randomising(job: _Audited, lengths: Sequence[tuple[int, int]], speed: Speed) -> float:
    """Every method once on the model as it is, and once for each number of blocks.

    Passes without gradients go only through blocks from the lowest randomised one on: on average half of them.
    """
    model = job.model
    blocks, plan = len(find_blocks(model.core)), job.suite.plan.randomisation
    states = sum(blocks if order == "cascading" else blocks - 1 for order in plan.orders) * plan.draws
    seconds = 0.0
    for made in job.methods:
        # As raison.trust.randomisation leaves out, told by the count of passes instead of a run.
        if Property.TRAINED not in made.properties and made.total_cost(1) != Cost():
            shared = (blocks + 1) / (2 * blocks) if _only_masks(made) else 1.0
            once = sum(speed.seconds(made.total_cost(units), length) for units, length in lengths)
            seconds += once * (1 + states * shared)
    return seconds


def _only_masks(method: Method) -> bool:
    """Whether a method asks for predictions alone."""
    return not method.needs and method.cost(8).backwards == 0


def _attacking(job: _Audited) -> float:
    model = job.model
    left_out = undifferentiable(model, job.methods)
    methods = [method for method in job.methods if label_of(method) not in left_out]
    attacked = min(job.suite.plan.attacked, len(job.suite.texts))
    if not methods:
        return 0.0
    encoding = model.encode(list(job.suite.texts[:attacked]), job.suite.settings.unit, job.suite.settings.truncate)
    seconds = attack_seconds(
        model, [job.suite.texts[text] for text in probes(encoding)], methods, job.suite.settings, job.suite.plan.attack
    )
    return seconds * sum(encoding.lengths)


def _changing(job: _Audited, speed: Speed) -> float:
    """Each text is explained once, and once more in every wording that turns out to be harmless: that is asked now."""
    (metric,) = create_metrics([HARMLESS])
    assert isinstance(metric, HarmlessChange)
    batch = prepare(job.model, job.suite.texts[: job.suite.plan.changed], job.suite.settings)
    encoding = batch.encoding
    asked = [(text, edit(name, given)) for text, given in enumerate(encoding.texts) for name in metric.edits]
    wordings_of = [
        (text, edited.given(encoding.units[text], encoding.unit)) for text, edited in asked if edited is not None
    ]
    seconds = _explaining(job, batch, range(len(encoding)), speed)
    if not wordings_of:
        return seconds
    wordings = prepare(job.model, [wording for _, wording in wordings_of], replace(job.suite.settings, truncate=True))
    rows = [
        row
        for row, (text, _) in enumerate(wordings_of)
        if is_harmless(BatchRow(batch, text), BatchRow(wordings, row), batch.target.row(text, 1), metric.tolerance)
    ]
    return seconds + _explaining(job, wordings, rows, speed)


def _explaining(job: _Audited, batch: Batch, rows: Iterable[int], speed: Speed) -> float:
    """Some texts by every method."""
    units, lengths = batch.encoding.unit_counts, batch.encoding.lengths
    return sum(speed.seconds(made.total_cost(units[row]), lengths[row]) for row in rows for made in job.methods)


def _exchanging(job: _Audited, lengths: Sequence[tuple[int, int]], speed: Speed) -> float:
    """Each text is explained once, and in every round as often as a try keeps the prediction.

    How many do is counted in a first round of some texts, which is the same for all methods.
    """
    plan, attacked = job.suite.plan.substitution, job.suite.plan.attacked
    kept = kept_tries(job.model, job.suite.texts[: min(attacked, COUNTED)], job.suite.settings, plan)
    explained = 1 + plan.swaps * sum(kept) / len(kept)
    return explained * sum(
        speed.seconds(made.total_cost(units), length) for made in job.methods for units, length in lengths[:attacked]
    )


def _told(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 90 else f"{seconds:.0f} s"
