"""Which sources a language model's answer depends on. Plain numbers: this file never needs torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, get_args

from raison.core.errors import DataError, InputError
from raison.core.inputs.unit import Unit
from raison.core.note_names import NOISE
from raison.core.results.notes import check_noise, noise_in
from raison.core.results.viewed import ViewedResult
from raison.core.results.views import View, called, rendered
from raison.core.settings.reading import NAME, Fields

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

SCHEMA = 1

SourceLight = Literal["used", "not used", "undecided"]
"""Whether the statement needs the source: removing it has more effect than removing random text of the same length."""
Origin = Literal["sources", "together", "memory", "undecided"]
"""What a statement depends on: at least one source that is used, only several sources together, or none of them."""

_OPTIONAL = (
    "intervals",
    "supported",
    "notes",
    "version",
    "schema",
    "removed",
    "answer_ids",
    "gradients",
    "signed",
    "draws",
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A part of the answer, characters `start` to `end` of it.

    `log_probability` is that of its tokens after the whole prompt, `without` the same after a prompt without sources.
    `origin` is None if no lights were requested.
    """

    text: str
    start: int
    end: int
    tokens: int
    log_probability: float
    without: float
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A statement and a source: the drop of the statement's log-probability when the source is removed, and a light.

    `alike` are the ids of the source's near-duplicates, which are removed together with it. The source counts as used
    if the drop exceeds `bar`, the effect of removing random text of the same length; None if the other sources do not
    have as much text.
    """

    drop: float
    bar: float | None
    light: SourceLight
    alike: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Citations(ViewedResult):
    """Scores of the sources, and of sentences within them, for each statement of an answer.

    - `sources` are the spans of the sources in the prompt, each named by its id. `sentences` are named by the id of
      their source.
    - `scores[i][j]` is for statement i and source j; `intervals[i][j]` has two numbers if the method samples.
    - `within[i][k]` is for statement i and sentence k; None for a sentence that the method did not examine.
    - `checks[i][j]` has the lights; it is empty without draws (`draws=0`).
    - `draws` is the number of random texts per source that the lights compare with; None in records without it.
    - `supported[i][j]` is the degree, from 0 to 1, to which source j entails statement i, if a judge was given.
    - `of` is the explained quantity of each statement: its log-probability, or its log-odds.
    - `removed[j]` are the characters of the prompt that are removed with source j: its text and its label.
      `answer_ids` are the tokens of the answer.
    - `evaluations` counts all masked prompts that were run, each followed by the whole answer, the one without any
      source included, and the other forward passes of a method that looks inside the model. `gradients` counts backward
      passes. `signed`: whether scores below zero speak against a statement; otherwise they say only how much a source
      matters.
    """

    _what: ClassVar[str] = "citations"
    _page: ClassVar[View] = View.CITATIONS_PAGE
    _fragment: ClassVar[View] = View.CITATIONS_FRAGMENT

    question: str
    prompt: str
    answer: str
    sources: tuple[Unit, ...]
    sentences: tuple[Unit, ...]
    statements: tuple[Statement, ...]
    scores: tuple[tuple[float, ...], ...]
    within: tuple[tuple[float | None, ...], ...]
    checks: tuple[tuple[Check, ...], ...]
    of: str
    method: str
    config: dict[str, Any]
    model: str
    template: str
    removal: str
    seed: int
    evaluations: int
    seconds: float
    intervals: tuple[tuple[tuple[float, float], ...], ...] = ()
    supported: tuple[tuple[float, ...], ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    schema: int = SCHEMA
    removed: tuple[tuple[int, int], ...] = ()
    answer_ids: tuple[int, ...] = ()
    gradients: int = 0
    signed: bool = True
    draws: int | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The sources' ids, in the order of the prompt."""
        return tuple(source.name for source in self.sources)

    def order(self, statement: int) -> tuple[str, ...]:
        """The ids of all sources, the highest score of a statement first."""
        row = self.scores[self._number(statement)]
        return tuple(self.ids[j] for j in sorted(range(len(row)), key=lambda j: -row[j]))

    def ranked(self, statement: int) -> tuple[str, ...]:
        """The same without sources whose scores are within the noise of a model behind a server."""
        noise, row = noise_in(self.notes), self.scores[self._number(statement)]
        return tuple(name for name in self.order(statement) if not noise or abs(row[self.ids.index(name)]) > noise)

    def top(self, statement: int) -> str:
        """The id of the source with the highest score for a statement."""
        return self.order(statement)[0]

    def used(self, statement: int) -> tuple[str, ...]:
        """The ids of the sources whose light is "used" for a statement, the highest score first.

        Raises InputError if no lights were requested.
        """
        if not self.checks:
            raise InputError("these citations have no lights: cite with draws=16, or use the scores.")
        row = dict(zip(self.ids, self.checks[self._number(statement)], strict=True))
        return tuple(name for name in self.order(statement) if row[name].light == "used")

    def passages(self, statement: int) -> tuple[tuple[Unit, float], ...]:
        """The sentences that the method scored for a statement, the highest score first."""
        row = self.within[self._number(statement)]
        scored = [(unit, score) for unit, score in zip(self.sentences, row, strict=True) if score is not None]
        return tuple(sorted(scored, key=lambda pair: -pair[1]))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        units = {name: [unit.to_dict() for unit in getattr(self, name)] for name in ("sources", "sentences")}
        return asdict(self) | units

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Citations":
        """The inverse of `to_dict`. Raises DataError for missing or invalid fields, or a newer schema."""
        record = Fields(data, cls._what)
        record.schema(SCHEMA)
        record.need([f.name for f in fields(cls) if f.name not in _OPTIONAL])
        for name in ("question", "prompt", "answer", "method", "model", "template"):
            record.string(name)
        for name in ("of", "removal"):
            record.string(name, NAME)
        record.whole("seed", None)
        record.whole("evaluations")
        if "gradients" in data:
            record.whole("gradients")
        if data.get("draws") is not None:
            record.whole("draws")
        if not isinstance(data.get("signed", True), bool):
            record.refuse("signed", "true or false")
        for name in ("config", "notes"):
            if name == "config" or name in data:
                record.plain(name)
        if NOISE in data.get("notes", {}):
            check_noise(Fields(data["notes"], record.what))
        if "version" in data:
            record.string("version", NAME)
        values = {f.name: data[f.name] for f in fields(cls) if f.name in data}
        values["seconds"] = record.number("seconds", 0.0)
        for name in ("sources", "sentences"):
            values[name] = Fields({"units": data[name]}, f"citations: {name}").units((data["prompt"],))
        ids = [source.name for source in values["sources"]]
        _check_names(record, ids, [sentence.name for sentence in values["sentences"]])
        values |= _read_again(record, len(ids))
        values["statements"] = tuple(_statement(one, len(data["answer"])) for one in record.objects("statements"))
        return cls(**values | _tables(record, len(values["statements"]), len(ids), len(values["sentences"])))

    def to_frame(self) -> "pd.DataFrame":
        """One row per statement and source."""
        # Only now: no other result needs it.
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "statement": i,
                    "text": statement.text,
                    "source": self.ids[j],
                    "score": score,
                    **({"low": self.intervals[i][j][0], "high": self.intervals[i][j][1]} if self.intervals else {}),
                    **({"drop": self.checks[i][j].drop, "light": self.checks[i][j].light} if self.checks else {}),
                    **({"supported": self.supported[i][j]} if self.supported else {}),
                }
                for i, statement in enumerate(self.statements)
                for j, score in enumerate(self.scores[i])
            ]
        )

    def save(self, path: "str | Path") -> "Path":
        """Save it to a file whose ending selects the format: .html or .json. Raises InputError for another ending."""
        return cast("Path", called("pages.saving.save", self, path))

    def __str__(self) -> str:
        return rendered(self, View.CITATIONS_TEXT)

    def __repr__(self) -> str:
        return f"<Citations {self.method} of {len(self.statements)} statements, {len(self.sources)} sources>"

    def _number(self, statement: int) -> int:
        if not -len(self.statements) <= statement < len(self.statements):
            raise InputError(f"statement {statement} does not exist: there are {len(self.statements)}, counted from 0.")
        return statement % len(self.statements)


def _read_again(record: Fields, sources: int) -> dict[str, Any]:
    """The fields by which the model can be asked again, if they were recorded."""
    values: dict[str, Any] = {}
    if record.data.get("answer_ids"):
        values["answer_ids"] = tuple(_count(record, "answer_ids", one) for one in record.items("answer_ids", None))
    if record.data.get("removed"):
        pairs = record.items("removed", sources)
        values["removed"] = tuple(
            tuple(_count(record, "removed", one) for one in Fields({"row": pair}, record.what).items("row", 2))
            for pair in pairs
        )
    return {name: values.get(name, ()) for name in ("answer_ids", "removed")}


def _count(record: Fields, name: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        record.refuse(name, "whole numbers of at least 0")
    return int(value)


def _check_names(record: Fields, ids: list[str], homes: list[str]) -> None:
    if not ids or "" in ids or len(set(ids)) < len(ids):
        record.refuse("sources", "a list of at least one source, each with an id of its own")
    if not set(homes) <= set(ids):
        record.refuse("sentences", "a list of sentences, each with the name of its source")


def _statement(record: Fields, length: int) -> Statement:
    record.need([f.name for f in fields(Statement) if f.name != "origin"])
    record.string("text")
    for name in ("start", "end", "tokens"):
        record.whole(name)
    if not record.data["start"] < record.data["end"] <= length:
        record.refuse("end", f"after its start and at most the answer's end, {length}")
    if record.data.get("origin") is not None:
        record.choice("origin", get_args(Origin))
    values = {f.name: record.data[f.name] for f in fields(Statement) if f.name in record.data}
    numbers = {name: record.number(name) for name in ("log_probability", "without")}
    return Statement(**values | numbers)


def _tables(record: Fields, statements: int, sources: int, sentences: int) -> dict[str, Any]:
    """The fields that have a row for each statement."""
    if not statements:
        record.refuse("statements", "a list of at least one statement")
    values: dict[str, Any] = {
        "scores": tuple(row.numbers("row", sources) for row in _rows(record, "scores", statements)),
        "within": tuple(_some(row, sentences) for row in _rows(record, "within", statements)),
        "checks": tuple(_checks(row, sources) for row in _rows(record, "checks", statements)),
    }
    if "intervals" in record.data:
        values["intervals"] = tuple(
            tuple(Fields({"row": pair}, row.what).numbers("row", 2) for pair in row.items("row", sources))
            for row in _rows(record, "intervals", statements)
        )
    if "supported" in record.data:
        values["supported"] = tuple(
            row.numbers("row", sources, 0.0, 1.0) for row in _rows(record, "supported", statements)
        )
    return values


def _rows(record: Fields, name: str, count: int) -> list[Fields]:
    """The rows of a table, each as a field "row"; only scores and sentences are required."""
    rows = record.items(name, None if name in ("checks", "intervals", "supported") else count)
    if rows and len(rows) != count:
        record.refuse(name, f"a list of {count} rows, or empty")
    return [Fields({"row": row}, f"citations: {name}[{place}]") for place, row in enumerate(rows)]


def _some(row: Fields, count: int) -> tuple[float | None, ...]:
    """Numbers, or null."""
    values = row.items("row", count)
    known = iter(Fields({"row": [one for one in values if one is not None]}, row.what).numbers("row", None))
    return tuple(None if one is None else next(known) for one in values)


def _checks(row: Fields, count: int) -> tuple[Check, ...]:
    checks = []
    row.items("row", count)
    for one in row.objects("row"):
        one.need(["drop", "bar", "light"])
        one.choice("light", get_args(SourceLight))
        bar = None if one.data["bar"] is None else one.number("bar")
        alike = one.strings("alike") if "alike" in one.data else ()
        checks.append(Check(one.number("drop"), bar, cast("SourceLight", one.data["light"]), tuple(alike)))
    return tuple(checks)


def check_ids(ids: Sequence[object]) -> None:
    """DataError for invalid ids of sources."""
    for one in ids:
        if not isinstance(one, str) or not one.strip() or len(one) > NAME:
            raise DataError(f"the source id {one!r:.60} is not valid: give a string of 1 to {NAME} characters.")
