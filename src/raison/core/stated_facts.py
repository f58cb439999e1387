"""Whether what a method or a metric states, and how its functions are called, is what lists and checks rely on."""

from collections.abc import Callable, Iterator
from typing import get_args

from raison.core.capability import Capability
from raison.core.errors import first_line
from raison.core.method import Cost, Method, Property
from raison.core.metric import GroupMetric, Metric, Need
from raison.core.settings.declared import untaken
from raison.core.targets.choices import Of
from raison.core.targets.outputs import EVERY

USUAL = 20
"""Number of units of a typical text, for which lists ask a method for its cost."""


def method_fault(method: Method) -> str:
    """What is wrong with the class of a method, in words that name it; "" if nothing is."""
    return next(_method_faults(method), "")


def metric_fault(metric: Metric | GroupMetric) -> str:
    """What is wrong with the class of a metric, likewise."""
    return next(_metric_faults(metric), "")


def _method_faults(method: Method) -> Iterator[str]:
    yield from _outside(method, "needs", _is_capability, "capabilities, such as frozenset({WordEmbeddings})")
    yield from _outside(
        method, "properties", [*Property].__contains__, "properties, such as frozenset({Property.DUMMY})"
    )
    yield from _outside(method, "outputs", EVERY.__contains__, f"some of {', '.join(sorted(EVERY))}")
    if {Property.SIGNED, Property.UNSIGNED} <= method.properties:
        yield f"{type(method).__name__}.properties has SIGNED and UNSIGNED: leave one out"
    if method.statement_value not in get_args(Of):
        yield _unfit(method, "statement_value", f"one of {', '.join(get_args(Of))}")
    if not isinstance(method.passes, str):
        yield _unfit(method, "passes", "a text, such as 'n forward'")
    yield from _uncallable(method, Method)
    yield from _cost_faults(method)


def _cost_faults(method: Method) -> Iterator[str]:
    name = type(method).__name__
    try:
        cost = method.cost(USUAL)
    except Exception as error:  # noqa: BLE001 - the class is an author's, and any error of it is what is looked for
        yield f"{name}.cost fails for {USUAL} units ({type(error).__name__}: {first_line(error)})"
        return
    if not isinstance(cost, Cost):
        yield f"{name}.cost returns {cost!r:.60} for {USUAL} units: return a Cost, such as Cost(forwards=units)"


def _metric_faults(metric: Metric | GroupMetric) -> Iterator[str]:
    yield from _outside(metric, "needs", [*Need].__contains__, "needs, such as frozenset({Need.RATIONALES})")
    if not isinstance(metric.higher_is_better, bool | None):
        yield _unfit(metric, "higher_is_better", "True, False, or None if neither is better")
    yield from _uncallable(metric, GroupMetric if isinstance(metric, GroupMetric) else Metric)


def _outside(
    made: Method | Metric | GroupMetric, constant: str, known: Callable[[object], bool], expected: str
) -> Iterator[str]:
    value = getattr(made, constant)
    if not isinstance(value, set | frozenset) or not all(map(known, value)):
        yield _unfit(made, constant, f"a frozenset of {expected}")


def _is_capability(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Capability)


def _uncallable(made: Method | Metric | GroupMetric, base: type) -> Iterator[str]:
    """The abstract functions of the base that do not take its arguments."""
    for name in sorted(base.__abstractmethods__):  # type: ignore[attr-defined]
        declared = getattr(base, name)
        if callable(declared) and (arguments := untaken(getattr(made, name), declared)):
            yield f"{type(made).__name__}.{name} has to take {arguments}, as {base.__name__}.{name} does"


def _unfit(made: object, constant: str, expected: str) -> str:
    found = " ".join(repr(getattr(made, constant)).split())
    return f"{type(made).__name__}.{constant} is {found:.60}: give {expected}"
