"""A run as shown: its facts, and its texts as lines of a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.report.explanations.listed import Listable, Strong, listed, strongest_of
from raison.runs.words import deciding

OVERVIEW = 20_000
"""Maximum number of texts whose words are counted; the first ones."""


class AbsentError(Exception):
    """There is no such run, row or text."""


@dataclass(frozen=True, slots=True)
class RowKey:
    """One row of a run under one seed."""

    run: str
    row: str
    seed: int


@dataclass(frozen=True, slots=True)
class RunLine:
    """One text of a row.

    `id` is "" if the data give none. If the run holds only records, `text`, `confidence` and `top`, the deciding unit,
    are None, and `strongest`, the units with the largest absolute scores, is empty; `label` is None if the text's own
    is unknown. `value` is the number that a model gives, None for any other output. `size` counts the written tokens or
    statements, None without any.
    """

    number: int
    id: str
    text: str | list[str] | None
    label: str | None
    prediction: str
    target: str
    confidence: float | None
    units: int
    top: str | None
    evaluations: float
    gradients: float
    seconds: float
    value: float | None = None
    size: int | None = None
    scores: Mapping[str, object] = field(default_factory=dict)
    strongest: tuple[Strong, ...] = ()


@dataclass(frozen=True, slots=True)
class RowFacts:
    """A row of a run's table."""

    label: str
    method: str
    seeds: tuple[int, ...]
    selected_by: str | None


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """A metric of a run."""

    label: str
    higher_is_better: bool | None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run: a comparison, or the explanations of files, which are one row without metrics.

    `gives` is the kind of the model's output as in lists ("" for several kinds); `explained` says whether it holds
    explanations, `labelled` whether the texts' own labels are known.
    """

    run: str
    model: str
    data: str
    texts: int
    unit: str
    of: str
    gives: str
    rows: tuple[RowFacts, ...]
    metrics: tuple[MetricFacts, ...]
    explained: bool
    labelled: bool


def shown_text(e: Explanation) -> str | list[str]:
    """A text as a JSON value."""
    return e.text if isinstance(e.text, str) else list(e.text)


def top_of(e: Explanation) -> str | None:
    """The text of the deciding unit."""
    place = deciding(e)
    return None if place is None else e.units[place].text


def line_of(number: int, e: Listable, name: str = "", label: str | None = None) -> RunLine:
    """A result as a line; `name` is the text's id in the data."""
    if not isinstance(e, Explanation):
        return _written(number, e, name)
    return RunLine(
        number=number,
        id=name,
        text=shown_text(e),
        label=label,
        prediction=e.prediction,
        target=e.target,
        confidence=e.confidence,
        units=len(e.units),
        top=top_of(e),
        evaluations=e.evaluations,
        gradients=e.gradients,
        seconds=e.seconds,
        value=e.number,
        strongest=strongest_of(e),
    )


def _written(number: int, result: GenerationExplanation | Citations, name: str) -> RunLine:
    entry = listed(number, result)
    return RunLine(
        number=number,
        id=name,
        text=(result.question or result.prompt) if isinstance(result, Citations) else result.prompt,
        label=None,
        prediction=entry.said,
        target=entry.explained,
        confidence=None,
        units=entry.units,
        top=None,
        evaluations=result.evaluations,
        gradients=0 if isinstance(result, Citations) else result.gradients,
        seconds=result.seconds,
        size=len(result.statements if isinstance(result, Citations) else result.tokens),
        strongest=strongest_of(result),
    )
