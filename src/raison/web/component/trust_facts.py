"""Facts about the trustworthiness of a map: an audit of its model, or else its method, and its own numbers."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TypeGuard

from raison.core.errors import InputError, RaisonError
from raison.core.method import Method, Property
from raison.core.registry import label_of, summary_of
from raison.core.results.explanation import Explanation
from raison.explaining.evidence import recreated
from raison.report.style import gaps, phrases
from raison.report.style.markup import minus
from raison.studies.kinds.audit.results import Audit

PROMISES = {
    Property.COMPLETE: "its scores add up to the change in value",
    Property.DUMMY: "a unit that changes nothing scores zero",
}
"""Properties that contract tests hold every method to, in words."""


@dataclass(frozen=True, slots=True)
class TrustFact:
    """A name and its value."""

    name: str
    said: str


@dataclass(frozen=True, slots=True)
class MapTrust:
    """`light` is that of an audit of this model, None without one; `lead` names its origin."""

    light: str | None
    lead: str
    findings: tuple[TrustFact, ...]
    facts: tuple[TrustFact, ...]


@dataclass(frozen=True, slots=True)
class ModelAudit:
    """An audit of the exact model that was explained, and the name of its folder."""

    name: str
    audit: Audit


def prediction_of(result: object) -> Explanation:
    """The explanation of a prediction, for the trust panel. Raises InputError for another result."""
    if not isinstance(result, Explanation):
        raise InputError("the trust panel is for predictions, and this explains generated text.")
    return result


def trusted(e: Explanation, audits: Iterable[ModelAudit], advised: str | None) -> dict[str, object]:
    """The facts as plain values, with those of the first audit that has the map's method with its settings.

    `advised` is the recommendation of an audit in the cache for this exact model.
    """
    facts, method = _facts(e), method_of(e)
    label = None if method is None else label_of(method)
    # Without a method, none is read.
    fitting = audits if label is not None else ()
    found = ((audit.name, one) for audit in fitting for one in audit.audit.methods if one.method == label)
    name, tested = next(found, ("", None))
    if tested is not None:
        lead = f"The audit {name} of this model, over {phrases.count(tested.score.count, 'text')}: {tested.light}"
        findings = tuple(TrustFact(f"{one.question}: {one.light}", one.says) for one in tested.evidence)
        return asdict(MapTrust(tested.light, lead, findings, facts))
    lead = "No audit of this model has this method with these settings"
    recommended = () if advised is None else (TrustFact("An audit of this model recommended", advised),)
    return asdict(MapTrust(None, lead, (*recommended, *_of_method(e)), facts))


def method_of(e: Explanation) -> Method | None:
    """The method of an explanation with its settings; None for one that this version does not have."""
    try:
        return recreated(e)
    except RaisonError:
        return None


def _of_method(e: Explanation) -> tuple[TrustFact, ...]:
    method = method_of(e)
    if method is None:
        return (TrustFact(e.method, "this version does not know it"),)
    about = summary_of(method.__doc__ or "")
    kept = [promise for claim, promise in PROMISES.items() if claim in method.properties]
    promised = "; ".join(kept) or "nothing of its scores that holds for every model"
    return (TrustFact(e.method, about), TrustFact("It promises", promised))


def _facts(e: Explanation) -> tuple[TrustFact, ...]:
    known = {
        "Completeness gap": minus(gaps.completeness(e, e.completeness_gap)),
        "Sampling error": _sampling(e),
        "Unknown to the model": phrases.unread(e) or "no token",
        "Cut off": phrases.truncation(e) or "nothing",
        "Noise of the server": phrases.noise(e.notes),
    }
    return tuple(TrustFact(name, words) for name, words in known.items() if words is not None)


def _sampling(e: Explanation) -> str:
    method = method_of(e)
    if errors := [one for one in _listed(e, "standard_error") if _is_number(one)]:
        return f"up to {max(errors):.2g} (the largest standard error of a score)"
    pairs = [one for one in _listed(e, "intervals") if isinstance(one, list) and len(one) == 2]
    if widths := [high - low for low, high in pairs if _is_number(low) and _is_number(high)]:
        widest = max(widths)
        return f"up to {widest / 2:.2g} to either side (half the widest 95 % interval of a score)"
    if method is not None and Property.RANDOM not in method.properties:
        return "none: the method does not sample"
    return "not measured by this method"


def _listed(e: Explanation, note: str) -> list[object]:
    """A note that is a list of numbers. Notes may come from anywhere: other values are ignored."""
    value = e.notes.get(note)
    return value if isinstance(value, list) else []


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float)
