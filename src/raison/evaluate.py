"""The only caller of metrics: all keeps of all metrics in one go, then one number per text, then means."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.explanation import Explanation
from raison.core.metric import IN_PLACE, KeepRows, Metric
from raison.core.model import LanguageModel
from raison.core.problem import Ledger, Problem
from raison.core.registry import label_of
from raison.core.results import MetricScores, Scores, Summary
from raison.core.target import Target
from raison.explain import BATCH, Batch, Settings, prepare
from raison.metrics import CATALOGUE
from raison.numerics.bootstrap import mean_interval
from raison.progress import Advance, progress_bar

DEFAULT_METRICS = (
    "comprehensiveness",
    "sufficiency",
    "aopc_comprehensiveness",
    "aopc_sufficiency",
    "log_odds",
)


def evaluate(
    model: LanguageModel,
    explanations: Explanation | Sequence[Explanation],
    metrics: Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    progress: bool | Advance = True,
) -> Scores:
    """Judge the explanations of one method.

    Args:
        model: the model that was explained.
        explanations: of one method with one setting, all at the same unit.
        metrics: names, calls such as "comprehensiveness(share=0.1)" or instances.
        progress: a progress bar on stderr, or a function that is told of finished texts.

    Returns:
        Each metric's values, mean and 95 % bootstrap interval, and the cost of the explanations.

    Raises:
        InputError: explanations of several methods or units, or whose units the model's tokenizer does not find.
    """
    given = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    chosen = create_metrics(metrics)
    label = _one_method(given)
    rows: list[list[float]] = []
    with progress_bar("metrics", len(given), progress) as advance:
        for start in range(0, len(given), BATCH):
            part = given[start : start + BATCH]
            rows += measure(_batch_of(model, part), part, chosen)
            advance(len(part))
    return summarise(label, given, chosen, rows)


def create_metrics(metrics: Sequence[str | Metric]) -> list[Metric]:
    """Instances of the named metrics. Raises UnknownNameError, InputError."""
    if isinstance(metrics, str):
        raise InputError(f"metrics is a list of names; write metrics=['{metrics}'].")
    return [CATALOGUE.create(metric) for metric in metrics]


def measure(batch: Batch, explanations: Sequence[Explanation], metrics: Sequence[Metric]) -> list[list[float]]:
    """Every metric of explanation i, which is one of the batch's text i modulo the batch's length.

    Explanations of several methods follow each other, so that keeps which they share are evaluated once.
    """
    texts = len(batch.encoding)
    evidence = [_TextEvidence(batch, i % texts, explanation) for i, explanation in enumerate(explanations)]
    _prefetch(batch, evidence, metrics)
    return [[metric.measure(found.explanation, found) for metric in metrics] for found in evidence]


def summarise(
    label: str, explanations: Sequence[Explanation], metrics: Sequence[Metric], rows: Sequence[Sequence[float]]
) -> Scores:
    """Means and intervals; `rows` has one list per explanation, in the order of the metrics."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(metrics)
    return Scores(
        method=label,
        metrics=tuple(
            MetricScores(label_of(metric), metric.higher_is_better, tuple(column), summary(column))
            for metric, column in zip(metrics, columns, strict=True)
        ),
        evaluations=summary([float(e.evaluations) for e in explanations]),
        gradients=summary([float(e.gradients) for e in explanations]),
        seconds=summary([e.seconds for e in explanations]),
    )


def summary(values: Sequence[float]) -> Summary:
    """Mean with its 95 % bootstrap interval."""
    return Summary(*mean_interval(values), len(values))


@dataclass(frozen=True, slots=True)
class _TextEvidence:
    """core.metric.Evidence for one explanation of one text of a batch."""

    batch: Batch
    text: int
    explanation: Explanation

    def probabilities(self, keeps: KeepRows, removal: str) -> np.ndarray:
        kind = self.resolve(removal)
        cache = self.batch.evaluations
        keys = [cache.key(self.text, kind, row.tobytes()) for row in keeps]
        if any(key not in cache.logits for key in keys):
            _compute(self.batch, kind, {self.text: [keeps]})
        logits = torch.stack([cache.logits[key] for key in keys]).double()
        target = Target(self._classes(len(keeps)), None, "probability", self.batch.model.multi_label)
        return target.scalar(logits).numpy()

    def resolve(self, removal: str) -> str:
        """The model's own name of a removal."""
        return self.batch.model.removals[0] if removal == IN_PLACE else removal

    def _classes(self, count: int) -> torch.Tensor:
        return torch.full((count,), self.batch.model.classes.index(self.explanation.target), dtype=torch.long)


def _prefetch(batch: Batch, evidence: Sequence[_TextEvidence], metrics: Sequence[Metric]) -> None:
    wanted: dict[str, dict[int, list[KeepRows]]] = {}
    for found in evidence:
        for metric in metrics:
            for removal, keeps in metric.keeps(found.explanation).items():
                wanted.setdefault(found.resolve(removal), {}).setdefault(found.text, []).append(keeps)
    for removal, keeps_of in wanted.items():
        _compute(batch, removal, keeps_of)


def _compute(batch: Batch, removal: str, keeps_of: dict[int, list[KeepRows]]) -> None:
    """Fill the shared evaluations."""
    keeps = [
        torch.from_numpy(np.concatenate(keeps_of[text])) if text in keeps_of else torch.ones(0, units, dtype=torch.bool)
        for text, units in enumerate(batch.encoding.unit_counts)
    ]
    ledger = Ledger.empty(len(batch.encoding))
    Problem(batch.model, batch.encoding, batch.target, removal, ledger, batch.evaluations).values(keeps)


def _one_method(explanations: Sequence[Explanation]) -> str:
    if not explanations:
        raise InputError("no explanation to evaluate: give at least one.")
    kinds = {(e.method, repr(e.config), e.unit) for e in explanations}
    if len(kinds) > 1:
        names = ", ".join(sorted({f"{method} ({unit})" for method, _, unit in kinds}))
        raise InputError(
            f"these explanations differ in method, settings or unit ({names}): evaluate each kind on its own, "
            "or use raison.compare."
        )
    return explanations[0].method


def _batch_of(model: LanguageModel, explanations: Sequence[Explanation]) -> Batch:
    first = explanations[0]
    truncate = any(e.truncated for e in explanations)
    settings = Settings(unit=first.unit, removal=first.removal, truncate=truncate)  # type: ignore[arg-type]
    batch = prepare(model, [e.text for e in explanations], settings)
    for explanation, units in zip(explanations, batch.encoding.units, strict=True):
        if explanation.units != units:
            raise InputError(
                f"the units of the explanation of {str(explanation.text)!r:.60} are not those that {model.name} finds: "
                f"it was made with another model ({explanation.model}) or version; explain the text again."
            )
        if explanation.target not in model.classes:
            raise InputError(
                f"the explanation is of the class '{explanation.target}', which {model.name} does not have "
                f"({', '.join(model.classes)})."
            )
    return batch
