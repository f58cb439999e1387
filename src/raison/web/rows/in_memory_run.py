"""A list of explanations as one run, whose table is answered from memory in slices."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cached_property
from typing import Any

from raison.core.errors import InputError, UnknownNameError
from raison.core.results.explanation import Explanation
from raison.core.settings.reading import plain_values
from raison.report.explanations.listed import Listable, common_kind, common_unit
from raison.runs.overview import overview
from raison.web.rows.lines import OVERVIEW, RowFacts, RunFacts, RunLine, line_of
from raison.web.rows.slices import LONGEST, Cut, TextFilter, slice_of
from raison.web.rows.strata import strata

_PLACE = ("run", "row", "seed")
_READ: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(("start", "count", "least", "most", "number"), int),
    **dict.fromkeys(("surer", "unsurer", "above", "below"), float),
    **dict.fromkeys(("descending", "wrong"), lambda value: {"true": True, "false": False}[value]),
}
"""How values other than strings are read: all are sent as strings, as in an address."""


class InMemoryRun:
    """Explanations with their texts' own labels, None if these are unknown. Each method is a row.

    A text's number is its place in the list.
    """

    def __init__(self, explanations: Sequence[Listable], labels: Sequence[str | None] | None = None) -> None:
        self.explanations = tuple(explanations)
        self.labels = (None,) * len(self.explanations) if labels is None else tuple(labels)
        self._rows = _by_method(self.explanations)

    @cached_property
    def facts(self) -> RunFacts:
        """The facts about the whole list."""
        models, quantities = ({getattr(e, name) for e in self.explanations} for name in ("model", "of"))
        return RunFacts(
            run="",
            model=" ".join(sorted(models)),
            data="",
            texts=len(self.explanations),
            unit=common_unit(self.explanations),
            of=quantities.pop() if len(quantities) == 1 else "",
            gives=common_kind(self.explanations),
            rows=tuple(
                RowFacts(row, self.explanations[numbers[0]].method, (0,), None) for row, numbers in self._rows.items()
            ),
            metrics=(),
            explained=True,
            labelled=any(label is not None for label in self.labels),
        )

    @cached_property
    def _all(self) -> tuple[RunLine, ...]:
        known = zip(self.explanations, self.labels, strict=True)
        return tuple(line_of(number, e, label=label) for number, (e, label) in enumerate(known))

    def answer(self, ask: str, body: Mapping[str, object]) -> dict[str, object]:
        """The server's answer to `GET /api/...` for a run. Raises RaisonErrors."""
        if ask == "runs":
            return plain_values({"runs": [asdict(self.facts)]})
        if ask not in _ANSWERS:
            raise UnknownNameError("question", ask, ["runs", *_ANSWERS])
        return _ANSWERS[ask](self, body)

    def slice(self, body: Mapping[str, object]) -> dict[str, object]:
        """Some lines: filtered, sorted, cut."""
        known = {one.name for kind in (TextFilter, Cut) for one in fields(kind)}
        values = {name: _value(name, value) for name, value in body.items() if name not in _PLACE}
        for name in values:
            if name not in known:
                raise UnknownNameError("field of a slice", name, known)
        cut = Cut(**{one.name: values[one.name] for one in fields(Cut) if one.name in values})
        if not 1 <= cut.count <= LONGEST or cut.start < 0:
            raise InputError(f"a slice has 1 to {LONGEST} texts, from 0 on.")
        wanted = TextFilter(**{one.name: values[one.name] for one in fields(TextFilter) if one.name in values})
        return plain_values(asdict(slice_of(self._lines(body), wanted, cut)))

    def strata(self, body: Mapping[str, object]) -> dict[str, object]:
        """How often the model is right, by label, prediction, length and confidence."""
        return plain_values({"slices": [asdict(one) for one in strata(self._lines(body))]})

    def words(self, body: Mapping[str, object]) -> dict[str, object]:
        """The words of a row. Raises InputError for generated outputs, which have no classes."""
        results = [self.explanations[number] for number in self._row(body)[:OVERVIEW]]
        explanations = [e for e in results if isinstance(e, Explanation)]
        if len(explanations) < len(results):
            raise InputError("words are counted for explanations of predictions, and these explain generated text.")
        return plain_values(asdict(overview(explanations)))

    def explanation(self, body: Mapping[str, object]) -> dict[str, object]:
        """One explanation by its number, as JSON values."""
        return self.at(body).to_dict()

    def at(self, body: Mapping[str, object]) -> Listable:
        """One explanation by its number. Raises InputError for a number that does not exist."""
        number = _value("number", body.get("number", ""))
        if not isinstance(number, int) or not 0 <= number < len(self.explanations):
            raise InputError(f"there is no text {number!r:.40}: there are {len(self.explanations)}, counted from 0.")
        return self.explanations[number]

    def _lines(self, body: Mapping[str, object]) -> list[RunLine]:
        return [self._all[number] for number in self._row(body)]

    def _row(self, body: Mapping[str, object]) -> Sequence[int]:
        """The numbers of the explanations of a row."""
        row = str(body.get("row"))
        if row not in self._rows:
            raise UnknownNameError("row", row[:200], self._rows)
        return self._rows[row]


_ANSWERS: Mapping[str, Callable[[InMemoryRun, Mapping[str, object]], dict[str, object]]] = {
    "runs/texts": InMemoryRun.slice,
    "runs/slices": InMemoryRun.strata,
    "runs/words": InMemoryRun.words,
    "runs/explanation": InMemoryRun.explanation,
}


def _by_method(explanations: Sequence[Listable]) -> dict[str, list[int]]:
    """Places in the list by methods; settings are named if a method has several."""
    settings: dict[str, set[str]] = {}
    for e in explanations:
        settings.setdefault(e.method, set()).add(_settings(e))
    rows: dict[str, list[int]] = {}
    for number, e in enumerate(explanations):
        label = e.method if len(settings[e.method]) == 1 else f"{e.method}({_settings(e)})"
        rows.setdefault(label, []).append(number)
    return rows


def _settings(e: Listable) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in sorted(e.config.items()))


def _value(name: str, value: object) -> Any:
    try:
        return _READ[name](str(value)) if name in _READ else str(value)
    except (ValueError, KeyError) as error:
        raise InputError(f"{name} cannot be {value!r:.40}.") from error
