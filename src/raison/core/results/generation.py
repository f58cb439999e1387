"""Why a language model wrote each token of an output. Plain numbers: this file never needs torch."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from raison.core.errors import DataError, InputError
from raison.core.inputs.unit import Unit
from raison.core.note_names import BASELINE
from raison.core.results.explanation import OTHER as OTHER
from raison.core.results.explanation import Explanation, check_sign
from raison.core.results.notes import check_notes
from raison.core.results.viewed import ViewedResult
from raison.core.results.views import View, rendered
from raison.core.settings.reading import NAME, Fields

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1

_OPTIONAL = ("earlier", "notes", "version", "schema", "signed")


@dataclass(frozen=True, slots=True)
class OutputToken:
    """One token of the output: characters `start` to `end` of prompt + output.

    `value_full` and `value_empty` are the target's value after the whole prompt and with every unit removed; `against`
    is the token that it is contrasted with. `evaluations` and `gradients` count the forward and backward passes of
    single sequences that the method requested for this token, and `notes` are its notes. `method`, `config` and
    `signed` are given if they are not those of the whole output: `auto` chooses a method by the number of units.
    """

    text: str
    id: int
    start: int
    end: int
    probability: float
    value_full: float
    value_empty: float
    evaluations: int
    gradients: int
    against: str | None = None
    against_probability: float | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    method: str | None = None
    config: dict[str, Any] | None = None
    signed: bool | None = None


@dataclass(frozen=True, slots=True, repr=False)
class GenerationExplanation(ViewedResult):
    """Scores of the prompt's units, and of earlier output tokens if `earlier` is true, for each output token.

    `units` are the prompt's units. With `earlier`, the output tokens follow, except the last; their spans refer to
    prompt + output. `scores[i]` has a number for each unit that comes before output token i: all rows have the
    same length, or grow by one from token to token with `earlier`. `seconds` is the time for all tokens together.
    `signed` is as in an Explanation: if false, no score is below zero, and a score says only how much a unit matters.
    """

    _what: ClassVar[str] = "an explanation of an output"
    _page: ClassVar[View] = View.EXPLANATION_PAGE
    _fragment: ClassVar[View] = View.EXPLANATION_FRAGMENT

    prompt: str
    output: str
    tokens: tuple[OutputToken, ...]
    unit: str
    units: tuple[Unit, ...]
    scores: tuple[tuple[float, ...], ...]
    of: str
    method: str
    config: dict[str, Any]
    model: str
    removal: str
    seed: int
    seconds: float
    earlier: bool = False
    notes: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    schema: int = SCHEMA
    signed: bool = True

    @property
    def contrast(self) -> tuple[str, ...] | None:
        """The token that each output token is contrasted with, or None."""
        contrast = tuple(token.against for token in self.tokens if token.against is not None)
        return contrast or None

    @property
    def evaluations(self) -> int:
        """Forward passes of prompt and output that the method made.

        Tokens with the same units share them, because one pass over the whole output gives the values of all its
        tokens.
        """
        counts = [token.evaluations for token in self.tokens]
        return sum(counts) if self.earlier else max(counts)

    @property
    def gradients(self) -> int:
        """Backward passes: one per output token and point, because each token has its own gradient."""
        return sum(token.gradients for token in self.tokens)

    @property
    def log_probability(self) -> float:
        """Log of the probability of the whole output after the prompt."""
        return sum(math.log(token.probability) if token.probability > 0 else -math.inf for token in self.tokens)

    def token(self, number: int) -> Explanation:
        """One output token as a separate prediction, counted from 0 (from the end if negative)."""
        if not -len(self.tokens) <= number < len(self.tokens):
            raise InputError(f"output token {number} does not exist: there are {len(self.tokens)}, counted from 0.")
        number %= len(self.tokens)
        token = self.tokens[number]
        count = len(self.scores[number])
        shares = {token.text: token.probability}
        if token.against is not None and token.against_probability is not None:
            shares[token.against] = token.against_probability
        return Explanation(
            text=self._before(token.start, count),
            units=self.units[:count],
            scores=self.scores[number],
            classes=(*shares, OTHER),
            probabilities=(*shares.values(), max(0.0, 1 - sum(shares.values()))),
            target=token.text,
            against=token.against,
            value_full=token.value_full,
            value_empty=token.value_empty,
            evaluations=token.evaluations,
            gradients=token.gradients,
            seconds=self.seconds / len(self.tokens),
            notes=dict(token.notes),
            **self._provenance() | _own(token),
        )

    def whole(self) -> Explanation:
        """All output tokens together: the sums of their scores and of their values.

        For of="log_probability" this explains the log-probability of the output; for other choices of `of` the sum of
        the tokens' values, which is not a probability. Earlier outputs keep their scores for the tokens after them.
        """
        shares = {self.output: math.exp(self.log_probability)}
        against = None if self.contrast is None else " | ".join(self.contrast)
        if against is not None:
            shares[against] = math.prod(token.against_probability or 0.0 for token in self.tokens)
        baseline = self.tokens[0].notes.get(BASELINE)
        same = baseline is not None and all(token.notes.get(BASELINE) == baseline for token in self.tokens)
        totals = [math.fsum(row[unit] for row in self.scores if unit < len(row)) for unit in range(len(self.units))]
        return Explanation(
            text=self._before(self.tokens[-1].start, len(self.units)),
            units=self.units,
            scores=tuple(totals),
            classes=(*shares, OTHER),
            probabilities=(*shares.values(), max(0.0, 1 - sum(shares.values()))),
            target=self.output,
            against=against,
            value_full=math.fsum(token.value_full for token in self.tokens),
            value_empty=math.fsum(token.value_empty for token in self.tokens),
            evaluations=self.evaluations,
            gradients=self.gradients,
            seconds=self.seconds,
            notes=({BASELINE: baseline} if same else {}) | self.notes,
            **self._provenance(),
        )

    def _before(self, start: int, units: int) -> str:
        """The text before an output token, with its first `units` units: a character may consist of several tokens."""
        if not self.earlier:
            return self.prompt
        read = self.units[units - 1].end if units else 0
        return (self.prompt + self.output)[: max(start, read)]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self) | {"units": [unit.to_dict() for unit in self.units]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "GenerationExplanation":
        """The inverse of `to_dict`. Raises DataError for missing or invalid fields, or a newer schema."""
        record = Fields(data, cls._what)
        record.schema(SCHEMA)
        record.need([f.name for f in fields(cls) if f.name not in _OPTIONAL])
        for name in ("prompt", "output", "method", "model"):
            record.string(name)
        for name in ("unit", "of", "removal"):
            record.string(name, NAME)
        record.whole("seed", None)
        record.plain("config")
        values = {f.name: data[f.name] for f in fields(cls) if f.name in data}
        values["seconds"] = record.number("seconds", 0.0)
        whole = data["prompt"] + data["output"]
        values["units"] = record.units((whole,))
        count = len(values["units"])
        values["tokens"] = tuple(_token(token, len(whole), count) for token in record.items("tokens"))
        values["scores"] = _scores(record, len(values["tokens"]), count)
        checks: Mapping[str, Callable[[str], object]] = {
            "earlier": record.flag,
            "version": record.string,
        }
        for name, check in checks.items():
            if name in data:
                check(name)
        if "notes" in data:
            check_notes(data, record.what, count)
        check_sign(data.get("signed", True), (score for row in values["scores"] for score in row))
        return cls(**values)

    def to_frame(self) -> "pd.DataFrame":
        """One row per output token and unit before it."""
        # Only now: no other result needs it.
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "token": number,
                    "output": token.text,
                    "probability": token.probability,
                    "unit": unit.text,
                    **({"name": unit.name} if any(one.name for one in self.units) else {}),
                    "start": unit.start,
                    "end": unit.end,
                    "score": score,
                }
                for number, (token, row) in enumerate(zip(self.tokens, self.scores, strict=True))
                for unit, score in zip(self.units, row, strict=False)
            ]
        )

    def __str__(self) -> str:
        return rendered(self, View.EXPLANATION_TEXT)

    def __repr__(self) -> str:
        return f"<GenerationExplanation {self.method} of {self.output!r}: {len(self.tokens)} tokens>"

    def _provenance(self) -> dict[str, Any]:
        """What the explanations of single tokens and of the whole output have in common."""
        return {
            "unit": self.unit,
            "of": self.of,
            "method": self.method,
            "config": dict(self.config),
            "model": self.model,
            "removal": self.removal,
            "seed": self.seed,
            "version": self.version,
            "signed": self.signed,
        }


def _own(token: OutputToken) -> dict[str, Any]:
    """The method of a token, if it is not that of the whole output."""
    own = {"method": token.method, "config": token.config, "signed": token.signed}
    return {name: value for name, value in own.items() if value is not None}


def _token(data: Any, length: int, units: int) -> OutputToken:
    """A token of an output that ends, with its prompt, at `length`; its units are among the first `units`."""
    if not isinstance(data, dict):
        raise DataError(f"not an explanation of an output: a token is {data!r:.40}; it must be an object.")
    record = Fields(data, "an explanation of an output: a token")
    known = {f.name for f in fields(OutputToken)}
    record.need(sorted(known - {"against", "against_probability", "notes", "method", "config", "signed"}))
    record.string("text")
    record.optional_string("against")
    record.optional_string("method")
    for name, check in (("config", record.plain), ("signed", record.flag)):
        if data.get(name) is not None:
            check(name)
    for name in ("id", "start", "end", "evaluations", "gradients"):
        record.whole(name)
    if not data["start"] <= data["end"] <= length:
        record.refuse("end", f"between its start and the text's end, {length}")
    numbers = {name: record.number(name) for name in ("value_full", "value_empty")}
    for name in ("probability", "against_probability"):
        if name == "probability" or data.get(name) is not None:
            numbers[name] = record.number(name, 0.0, 1.0 + 1e-6)
    if "notes" in data:
        check_notes(data, record.what, units)
    return OutputToken(**{name: value for name, value in data.items() if name in known} | numbers)


def _scores(record: Fields, tokens: int, units: int) -> tuple[tuple[float, ...], ...]:
    rows = record.items("scores", tokens)
    if not rows or not all(isinstance(row, list | tuple) and len(row) <= units for row in rows):
        record.refuse("scores", f"a list of at least one row of at most {units} numbers")
    return tuple(Fields({"scores": row}, record.what).numbers("scores", len(row)) for row in rows)
