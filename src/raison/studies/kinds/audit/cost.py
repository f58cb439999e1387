"""The cost of an audit, estimated before it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from raison.core.capabilities.other_wordings import OtherWordings
from raison.core.method import Cost, Method
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.explaining.attribution import explanations_of
from raison.explaining.batch import Batch, prepare
from raison.explaining.bounds import TextSize, of_tokens
from raison.explaining.evidence import BatchRow, is_harmless
from raison.explaining.sources.rewordings import worded
from raison.judging.estimate import BackwardPasses, estimate_plan, probes, speed_of
from raison.methods import CATALOGUE
from raison.metrics.harmless_change import HarmlessChange
from raison.models.adapters.checks.throughput import Speed
from raison.models.derived.backbone import backbone_of
from raison.studies.kinds.audit.recommendation import RANDOM
from raison.studies.kinds.audit.results import CHANGES, FAITHFULNESS
from raison.studies.kinds.audit.spec import Suite
from raison.trust.attack_cost import attack_seconds
from raison.trust.attacks import undifferentiable
from raison.trust.randomisation import count_blocks, why_no_blocks
from raison.trust.substitution import irreplaceable, kept_tries

COUNTED = 4
"""Number of texts for which a first round of word substitutions is counted."""


@dataclass(frozen=True, slots=True)
class AuditCost:
    """Seconds of each part of an audit, by its name."""

    parts: dict[str, float]

    @property
    def seconds(self) -> float:
        """The seconds of all parts together."""
        return sum(self.parts.values())

    def text(self) -> str:
        """The cost in words."""
        listed = ", ".join(f"{name} {_told(seconds)}" for name, seconds in self.parts.items())
        return f"about {_told(self.seconds)}: {listed}"

    def to_dict(self) -> dict[str, object]:
        """Plain values."""
        return {"seconds": self.seconds, "parts": dict(self.parts)}


def cost_of(model: LanguageModel, suite: Suite) -> AuditCost:
    """Count the passes of a planned audit; time some of them and a few steps of its attacks."""
    methods = tuple(CATALOGUE.create(name) for name in suite.methods)
    plans = suite.comparisons(model)
    encoding = model.encode(list(suite.texts), suite.settings.unit, suite.settings.truncate)
    speed = speed_of(plans[FAITHFULNESS], encoding)
    job = _CostSubject(model, suite, methods, BackwardPasses.read(plans[FAITHFULNESS], encoding), speed)
    sizes = [
        _TextSize(*each) for each in zip(range(len(encoding)), encoding.unit_counts, encoding.lengths, strict=True)
    ]
    parts = {
        "faithfulness": estimate_plan(plans[FAITHFULNESS], speed).seconds,
        "harmless changes": _changing(job),
    }
    if backbone_of(model) is None:
        # No other test applies to a model of which only the answers are known.
        return AuditCost(parts)
    if not why_no_blocks(model):
        parts["randomised blocks"] = _randomising(job, sizes[: suite.plan.randomised])
    if suite.answers is not None:
        # Generated answers are not attacked.
        return AuditCost(parts)
    return AuditCost(parts | {"attacks": _attacking(job), "exchanged words": _exchanging(job, sizes)})


class _TextSize(NamedTuple):
    """A text by its number: its units and its tokens."""

    text: int
    units: int
    length: int


@dataclass(frozen=True, slots=True)
class _CostSubject:
    """The model and the methods of the estimate."""

    model: LanguageModel
    suite: Suite
    methods: tuple[Method, ...]
    tokens: BackwardPasses
    speed: Speed

    def seconds(self, made: Method, size: _TextSize) -> float:
        """The seconds of one explanation of a text."""
        cost = of_tokens(made, TextSize(size.units, size.length), self.tokens.of(made, size.text))
        return self.speed.seconds(cost, size.length)


def _randomising(job: _CostSubject, sizes: Sequence[_TextSize]) -> float:
    """Every method once on the model as it is, and once for each number of blocks.

    Passes without gradients go only through blocks from the lowest randomised one on: on average half of them.
    """
    blocks, plan = count_blocks(job.model), job.suite.plan.randomisation
    states = sum(blocks if order == "cascading" else blocks - 1 for order in plan.orders) * plan.draws
    seconds = 0.0
    for made in job.methods:
        # Left out as in raison.trust.randomisation, by the count of passes instead of a run.
        if not made.trained and made.total_cost(1) != Cost():
            shared = (blocks + 1) / (2 * blocks) if _only_masks(made) else 1.0
            seconds += sum(job.seconds(made, size) for size in sizes) * (1 + states * shared)
    return seconds


def _only_masks(method: Method) -> bool:
    """Whether a method asks for predictions alone."""
    return not method.needs and method.cost(8).backwards == 0


def _attacking(job: _CostSubject) -> float:
    model = job.model
    left_out = undifferentiable(model, job.methods)
    methods = [method for method in job.methods if label_of(method) not in left_out]
    attacked = min(job.suite.plan.attacked, len(job.suite.texts))
    if not methods:
        return 0.0
    encoding = model.encode(list(job.suite.texts[:attacked]), job.suite.settings.unit, job.suite.settings.truncate)
    chosen = probes(encoding)
    settings = job.suite.settings.of_texts(chosen)
    seconds = attack_seconds(
        model, [job.suite.texts[text] for text in chosen], methods, settings, job.suite.plan.attack
    )
    return seconds * sum(encoding.lengths)


def _changing(job: _CostSubject) -> float:
    """Each text is explained once, and again in every wording that is harmless, which is predicted here."""
    plan, settings = job.suite.comparisons(job.model)[CHANGES], job.suite.settings
    (metric,) = plan.judges
    assert isinstance(metric, HarmlessChange)
    batch = prepare(job.model, plan.texts, plan.settings)
    blanks = explanations_of(
        batch, CATALOGUE.create(RANDOM), torch.zeros(len(plan.texts), max(batch.encoding.unit_counts))
    )
    rewordings = [(text, one) for text, blank in enumerate(blanks) for one in metric.rewordings(blank)]
    seconds = _explaining(job, batch, {text: text for text in range(len(plan.texts))})
    model, texts = worded(job.model, [one for _, one in rewordings])
    reworded = [(text, texts[one]) for text, one in rewordings if one in texts]
    if not reworded:
        return seconds
    same = settings.of_texts([text for text, _ in reworded])
    of_wordings = replace(same, truncate=not model.offers(OtherWordings))
    wordings = prepare(model, [wording for _, wording in reworded], of_wordings)
    harmless = {
        row: text
        for row, (text, _) in enumerate(reworded)
        if is_harmless(BatchRow(batch, text), BatchRow(wordings, row), batch.target.row(text, 1), metric.tolerance)
    }
    return seconds + _explaining(job, wordings, harmless)


def _explaining(job: _CostSubject, batch: Batch, texts: Mapping[int, int]) -> float:
    """Some rows by every method, given the text of each."""
    units, lengths = batch.encoding.unit_counts, batch.encoding.lengths
    return sum(
        job.seconds(made, _TextSize(text, units[row], lengths[row]))
        for row, text in texts.items()
        for made in job.methods
    )


def _exchanging(job: _CostSubject, sizes: Sequence[_TextSize]) -> float:
    """Each text is explained once, and in every round as often as a try keeps the prediction.

    The number of these tries is counted in a first round on some texts, which is the same for all methods.
    """
    plan, attacked = job.suite.plan.substitution, job.suite.plan.attacked
    texts = job.suite.texts[: min(attacked, COUNTED)]
    if irreplaceable(job.model, texts[0], job.suite.settings):
        return 0.0
    kept = kept_tries(job.model, texts, job.suite.settings.of_texts(range(len(texts))), plan)
    explained = 1 + plan.swaps * sum(kept) / len(kept)
    return explained * sum(job.seconds(made, size) for made in job.methods for size in sizes[:attacked])


def _told(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 90 else f"{seconds:.0f} s"
