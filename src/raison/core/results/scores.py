"""Metric scores of methods: what evaluating and comparing return. Plain numbers: this file never needs torch."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from raison.core.errors import UnknownNameError
from raison.core.results.views import View, rendered
from raison.core.settings.reading import Fields, parse, plain_values

if TYPE_CHECKING:
    import pandas as pd


R = TypeVar("R", bound="Tabulated")


def _complete(cls: type[Any], record: Fields) -> Fields:
    """A JSON object with the defaults of fields that it lacks because they are newer. Raises DataError for others."""
    defaults = {
        one.name: one.default if one.default_factory is MISSING else one.default_factory() for one in fields(cls)
    }
    record.need([name for name, default in defaults.items() if default is MISSING])
    return Fields({**defaults, **record.data}, record.what)


@dataclass(frozen=True, slots=True)
class Summary:
    """The mean over `count` texts with its 95 % interval; NaN with a count of zero if nothing was measured."""

    mean: float
    low: float
    high: float
    count: int

    @classmethod
    def read(cls, record: Fields) -> "Summary":
        """What a JSON object holds, null as NaN. Raises DataError."""
        record = _complete(cls, record)
        mean, low, high = map(record.optional_number, ("mean", "low", "high"))
        return cls(mean, low, high, record.whole("count"))


@dataclass(frozen=True, slots=True)
class MetricScores:
    """One metric's value on every text (of a group metric: on every group), NaN where it is undefined.

    `parts` holds, where the value of many texts is more than a mean of values, the numbers per text that `pool`
    (a key of POOLS in numerics.statistics.bootstrap) makes it from. With several seeds, everything is averaged, and
    `seed_means` has the value of each. `texts` are the numbers of the values' texts, where several predictions of a
    text have one each: then the summary counts texts. `higher_is_better` is None where neither is better.
    """

    metric: str
    higher_is_better: bool | None
    values: tuple[float, ...]
    summary: Summary
    pool: str = "mean"
    parts: tuple[tuple[float, ...], ...] = ()
    seed_means: tuple[float, ...] = ()
    texts: tuple[int, ...] = ()

    @classmethod
    def read(cls, record: Fields) -> "MetricScores":
        """What a JSON object holds. Raises DataError."""
        record = _complete(cls, record)
        if record.data["higher_is_better"] is not None:
            record.flag("higher_is_better")
        parts = Fields(
            {str(number): part for number, part in enumerate(record.items("parts"))}, f"{record.what}: parts"
        )
        if len(record.wholes("texts")) not in (0, len(record.items("values"))):
            record.refuse("texts", "a number for each value, or empty")
        return cls(
            metric=record.string("metric"),
            higher_is_better=record.data["higher_is_better"],
            values=record.optional_numbers("values"),
            summary=Summary.read(record.inner("summary")),
            pool=record.string("pool"),
            parts=tuple(map(parts.optional_numbers, parts.data)),
            seed_means=record.optional_numbers("seed_means"),
            texts=record.wholes("texts"),
        )


@dataclass(frozen=True, slots=True, repr=False)
class Tabulated(ABC):
    """Results that make up a table."""

    _what: ClassVar[str]
    """What it is, in errors."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """The rows of the table, as flat records."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; NaN and infinity, which JSON lacks, become None."""
        plain: dict[str, Any] = plain_values(asdict(self))
        return plain

    def to_json(self, indent: int | None = None) -> str:
        """JSON text that `from_json` reads back; what is not finite comes back as NaN, tuples of settings as lists."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)

    @classmethod
    @abstractmethod
    def read(cls: type[R], record: Fields) -> R:
        """What a JSON object holds. Raises DataError."""

    @classmethod
    def from_json(cls: type[R], text: str) -> R:
        """Read what `to_json` wrote. Raises DataError for missing or invalid fields."""
        return cls.read(Fields(parse(text, cls._what), cls._what))

    def to_frame(self) -> "pd.DataFrame":
        """The rows of `records`."""
        # Only now: no other result needs it.
        import pandas as pd

        return pd.DataFrame(self.records())

    def __str__(self) -> str:
        return rendered(self, View.RESULTS_TEXT)

    def _repr_html_(self) -> str:
        return rendered(self, View.RESULTS_FRAGMENT)


@dataclass(frozen=True, slots=True, repr=False)
class Scores(Tabulated):
    """The results of one method, and its cost per text.

    `selected_by` is the metric that chose each text's map among the method's candidates, if any. `cautions` are
    warnings about the numbers, as sentences without full stops. If explanations of several labels of a multi-label
    model were evaluated, `by_target` has the results for each label alone.
    """

    _what: ClassVar[str] = "scores"

    method: str
    metrics: tuple[MetricScores, ...]
    evaluations: Summary
    gradients: Summary
    seconds: Summary
    selected_by: str | None = None
    cautions: tuple[str, ...] = ()
    by_target: Mapping[str, "Scores"] = field(default_factory=dict)

    @classmethod
    def read(cls, record: Fields) -> "Scores":
        """What a JSON object holds. Raises DataError."""
        record = _complete(cls, record)
        by_target = record.inner("by_target")
        return cls(
            method=record.string("method"),
            metrics=tuple(map(MetricScores.read, record.objects("metrics"))),
            evaluations=Summary.read(record.inner("evaluations")),
            gradients=Summary.read(record.inner("gradients")),
            seconds=Summary.read(record.inner("seconds")),
            selected_by=record.optional_string("selected_by"),
            cautions=record.strings("cautions"),
            by_target={target: cls.read(by_target.inner(target)) for target in by_target.data},
        )

    def __iter__(self) -> Iterator[str]:
        """The names of the metrics."""
        return (scores.metric for scores in self.metrics)

    def __getitem__(self, metric: str) -> MetricScores:
        """The scores of a metric by its name."""
        for scores in self.metrics:
            if scores.metric == metric:
                return scores
        raise UnknownNameError("metric", metric, [scores.metric for scores in self.metrics])

    def records(self) -> list[dict[str, Any]]:
        """One flat row per metric, the three costs last."""
        costs = {"evaluations": self.evaluations, "gradients": self.gradients, "seconds": self.seconds}
        named = [(scores.metric, scores.higher_is_better, scores.summary) for scores in self.metrics]
        named += [(name, False, summary) for name, summary in costs.items()]  # less effort is better
        return [
            {"method": self.method, "metric": name, "higher_is_better": higher, **asdict(summary)}
            for name, higher, summary in named
        ]

    def __repr__(self) -> str:
        means = ", ".join(f"{scores.metric} {scores.summary.mean:.3f}" for scores in self.metrics)
        return f"<Scores of {self.method}: {means}>"


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Tabulated):
    """Methods side by side on the same texts. `settings` has everything else that is needed to repeat it.

    `cautions` and `by_target` are as in Scores. With target="each", `texts` counts the explained labels of all texts.
    """

    _what: ClassVar[str] = "a comparison"

    rows: tuple[Scores, ...]
    model: str
    data: str
    texts: int
    unit: str
    of: str
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()
    by_target: Mapping[str, "Comparison"] = field(default_factory=dict)

    @classmethod
    def read(cls, record: Fields) -> "Comparison":
        """What a JSON object holds. Raises DataError."""
        record = _complete(cls, record)
        by_target = record.inner("by_target")
        return cls(
            rows=tuple(map(Scores.read, record.objects("rows"))),
            **{name: record.string(name) for name in ("model", "data", "unit", "of")},
            texts=record.whole("texts"),
            seed=record.whole("seed", least=None),
            settings=record.mapping("settings"),
            cautions=record.strings("cautions"),
            by_target={target: cls.read(by_target.inner(target)) for target in by_target.data},
        )

    def __iter__(self) -> Iterator[str]:
        """The names of the methods."""
        return (row.method for row in self.rows)

    def __getitem__(self, method: str) -> Scores:
        """The scores of a method by its name."""
        for row in self.rows:
            if row.method == method:
                return row
        raise UnknownNameError("method", method, [row.method for row in self.rows])

    def records(self) -> list[dict[str, Any]]:
        """One flat row per method and metric."""
        return [record for row in self.rows for record in row.records()]

    def to_markdown(self) -> str:
        """A Markdown table: best in bold, second best underlined."""
        return rendered(self, View.MARKDOWN)

    def to_latex(self) -> str:
        """A LaTeX table that needs the package booktabs."""
        return rendered(self, View.LATEX)

    def to_csv(self) -> str:
        """The rows of `records` as CSV."""
        return rendered(self, View.CSV)

    def to_html(self) -> str:
        """A standalone page that needs no network."""
        return rendered(self, View.RESULTS_PAGE)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(row.method for row in self.rows)} on {self.texts} texts>"
