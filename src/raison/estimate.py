"""What a comparison will cost, before it runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.explanation import Explanation
from raison.core.method import Method
from raison.core.metric import Metric
from raison.core.registry import label_of
from raison.core.unit import Text, Unit
from raison.evaluate import create_metrics
from raison.explain import Settings
from raison.methods import CATALOGUE
from raison.models.classifier import Classifier
from raison.models.speed import measure_speed

PROBED = 8
"""Texts on which the model's speed is measured."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Passes of single sequences over all texts, and about how long they take and how much memory.

    Upper bounds: keeps that methods and metrics share are evaluated once. `forwards` and `backwards` are by method;
    `metric_forwards` is what the metrics add for all methods together.
    """

    texts: int
    mean_units: float
    mean_tokens: float
    forwards: dict[str, int]
    backwards: dict[str, int]
    metric_forwards: int
    seconds: float
    model_bytes: int
    batch_bytes: int


def estimate(
    model: Classifier,
    texts: Sequence[Text],
    methods: Sequence[str | Method],
    metrics: Sequence[str | Metric],
    settings: Settings | None = None,
) -> Estimate:
    """Count the passes of a comparison, and time a few to say how long it will take.

    Tokenizes every text; runs the model for about two seconds.
    """
    settings = settings or Settings()
    chosen = {label_of(method): method for method in map(CATALOGUE.create, methods)}
    judges = create_metrics(metrics)
    encoding = model.encode(list(texts), settings.unit, settings.truncate)
    speed = measure_speed(model, encoding.select(range(min(PROBED, len(texts)))))
    costs = {label: [method.cost(count) for count in encoding.unit_counts] for label, method in chosen.items()}
    # Beside the methods' own passes, each text is predicted whole and with everything removed.
    judging = [len(chosen) * _metric_rows(units, judges) + 2 for units in encoding.units]
    seconds = 0.0
    for text, length in enumerate(encoding.lengths):
        backwards = sum(of_text[text].backwards for of_text in costs.values())
        forwards = sum(of_text[text].forwards for of_text in costs.values()) - backwards + judging[text]
        seconds += length * (max(0, forwards) * speed.forward + backwards * speed.backward)
    return Estimate(
        texts=len(texts),
        mean_units=sum(encoding.unit_counts) / len(texts),
        mean_tokens=sum(encoding.lengths) / len(texts),
        forwards={label: sum(cost.forwards for cost in of_texts) for label, of_texts in costs.items()},
        backwards={label: sum(cost.backwards for cost in of_texts) for label, of_texts in costs.items()},
        metric_forwards=sum(judging),
        seconds=seconds,
        model_bytes=speed.model_bytes,
        batch_bytes=speed.batch_bytes,
    )


def _metric_rows(units: tuple[Unit, ...], metrics: Sequence[Metric]) -> int:
    """Different keeps that the metrics ask for on one explanation, the whole text not counted."""
    stand_in = Explanation(
        text="",
        unit="word",
        units=units,
        scores=tuple(float(number) for number in range(len(units))),
        classes=("",),
        probabilities=(1.0,),
        target="",
        against=None,
        of="probability",
        value_full=1.0,
        value_empty=0.0,
        method="random",
        config={},
        model="",
        removal="mask",
        seed=0,
        evaluations=0,
        gradients=0,
        seconds=0.0,
    )
    keys = {
        (removal, row.tobytes())
        for metric in metrics
        for removal, keeps in metric.keeps(stand_in).items()
        for row in keeps
        if not row.all()
    }
    return len(keys)
