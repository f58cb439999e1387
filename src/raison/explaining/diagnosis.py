"""What a model is, what of it holds when it is tried, and which methods work on it."""

from dataclasses import dataclass

from raison.core.capability import Capability
from raison.core.errors import RaisonError, UnsupportedError
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.printable import printable
from raison.explaining.attribution import check_model
from raison.methods import CATALOGUE
from raison.models.adapters.blackbox import BlackBox
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.forecast import forecast
from raison.models.adapters.functioncheck import check_function
from raison.models.adapters.selfcheck import QUESTION, TEXT, Finding, disproved, selfcheck
from raison.models.derived.explainers import PROBES
from raison.models.stack.room import free_bytes

USUAL = 512
"""Tokens of the text whose time and memory are computed for a model without a limit."""
FEW = 10
"""Names that are all listed; of more, so many."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known of a model, the checks, and for each method why it does not work (nothing where it does)."""

    facts: dict[str, object]
    checks: tuple[Finding, ...]
    methods: dict[str, list[str]]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(finding.passed for finding in self.checks)

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values."""
        return {**self.facts, "checks": [_plain(finding) for finding in self.checks], "methods": self.methods}

    def __str__(self) -> str:
        """As lines of a terminal."""
        checks = [f"{'ok  ' if one.passed else 'FAIL'}  {one.check}: {one.detail}" for one in self.checks]
        return "\n".join(map(printable, [*self.told_facts, "", *checks, "", *self.told_methods]))

    @property
    def told_facts(self) -> list[str]:
        """A line for each fact."""
        return [f"{name:14}{_shown(value)}" for name, value in self.facts.items()]

    @property
    def told_methods(self) -> list[str]:
        """A line for the methods that work, and one for each other."""
        able = [name for name, missing in self.methods.items() if not missing]
        others = [f"  not {name}: {'; '.join(missing)}" for name, missing in self.methods.items() if missing]
        return ["methods that work: " + ", ".join(able), *others]


def doctor(model: LanguageModel, text: str | None = None, tokens: int | None = None) -> Diagnosis:
    """Try on a text what a model is said to support, and tell which methods work on it.

    Also what one text of so many `tokens` takes; by default the longest input, and for a function nothing. About a
    dozen passes of a transformers model; half a dozen answers of a function. Raises UnsupportedError for a model that
    is neither.
    """
    check_model(model)
    read = text or TEXT
    if isinstance(model, BlackBox):
        asked = ((QUESTION, read), (QUESTION, PROBES[1])) if model.pairs else (read, PROBES[1])
        facts, findings = _facts_of_function(model), check_function(model, *asked)
    elif isinstance(model, Classifier):
        facts, findings = _facts_of_classifier(model, tokens), selfcheck(model, read)
    else:
        raise UnsupportedError(f"{model.name} cannot be examined", [f"it is a {type(model).__name__}"])
    refuted = disproved(findings)
    methods = {name: _against(model, CATALOGUE.create(name), refuted) for name in CATALOGUE.names}
    return Diagnosis(facts, tuple(findings), methods)


def _facts_of_classifier(model: Classifier, tokens: int | None) -> dict[str, object]:
    return {
        "model": model.name,
        "class": type(model.core).__name__,
        "outputs": model.outputs,
        "classes": list(model.classes),
        "longest input": model.max_tokens,
        "device": str(model.device),
        "dtype": str(model.core.dtype).removeprefix("torch."),
        "removals": list(model.removals),
        **_lengthy(model, tokens or model.max_tokens or USUAL),
    }


def _lengthy(model: Classifier, tokens: int) -> dict[str, object]:
    """What one text of so many tokens takes, as facts."""
    found = forecast(model, tokens)
    told = [f"a pass takes about {found.evaluation.seconds:.2g} s"]
    named = (("with gradients", found.gradient), ("with all its attention", found.attention))
    told += [f"{name} {e.seconds:.2g} s and {e.kept / 2**30:.2g} GiB" for name, e in named if e is not None]
    free = free_bytes(model.device)
    if free is not None:
        told.append(f"{free / 2**30:.2g} GiB are free")
    return {f"{tokens:,} tokens": told}


def _facts_of_function(model: BlackBox) -> dict[str, object]:
    return {
        "model": model.name,
        "class": "function of pairs of texts" if model.pairs else "function of texts",
        "outputs": model.outputs,
        "classes": list(model.classes),
        "longest input": None,
        "batch": model.asking.batch,
        "removals": [*model.removals, "a string of yours"],
    }


def _shown(value: object) -> str:
    """Names with commas between; of many the first ones."""
    if isinstance(value, list):
        told = ", ".join(map(str, value[:FEW]))
        return told if len(value) <= FEW else f"{told}, and {len(value) - FEW} others"
    return "no limit" if value is None else str(value)


def _against(model: LanguageModel, method: Method, refuted: frozenset[type[Capability]]) -> list[str]:
    """Why a method does not work on a model."""
    if reasons := method.lacking(model, refuted):
        return reasons
    try:
        method.check(model)
    except RaisonError as error:
        return [str(error)]
    return []


def _plain(finding: Finding) -> dict[str, object]:
    capability = None if finding.capability is None else finding.capability.name
    return {"check": finding.check, "passed": finding.passed, "detail": finding.detail, "capability": capability}
