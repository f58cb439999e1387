"""What a model is, which checks it passes, and which methods work on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from raison.combining.advice import advised
from raison.core.capabilities.asked_again import AskedAgain
from raison.core.errors import TextTooLongError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.core.results.printable import printable
from raison.explaining.attribution import unfit_of
from raison.explaining.batch import check_model
from raison.methods import CATALOGUE, Auto
from raison.models.adapters.blackbox.function import BlackBox
from raison.models.adapters.checks.forecast import Forecast, expected, forecast, prompted, reading, repeated
from raison.models.adapters.checks.function_check import check_function
from raison.models.adapters.checks.selfcheck import TEXT, SelfCheckFinding, disproved, same_again, selfcheck
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.task_setup import QUESTION
from raison.models.adapters.writing.generator import Generator
from raison.models.adapters.writing.writer import Writer
from raison.models.derived.explainers import PROBES
from raison.models.stack.attention_memory import free_bytes
from raison.models.tokens.continuation import ContinuationEncoder

USUAL = 512
"""Text length in tokens for the time and memory forecast of a model without a length limit."""
PASSES = 100
"""Number of masked texts that a perturbation method typically needs."""
LENGTHS = (4, 12, 40, 200)
"""Text lengths in words for which the choice of auto is reported."""
STEPS = 50
"""Number of steps of a path of gradients."""
FEW = 10
"""Maximum number of names to list."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Facts about a model, the checks, and for each method why it does not work (nothing if it does)."""

    facts: dict[str, object]
    checks: tuple[SelfCheckFinding, ...]
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


def doctor(model: LanguageModel | Writer, text: str | None = None, tokens: int | None = None) -> Diagnosis:
    """Test on a text what a model claims to support, and report which methods work on it.

    Also measure the cost of one text of `tokens` tokens: by default of the maximum length, and nothing for a function.
    This takes about a dozen passes of a transformers model, or half a dozen calls of a function. For a generative
    model, the first token that it generates after the text is tested.
    """
    read = text or TEXT
    if isinstance(model, Writer):
        return _of_writer(model, read, tokens) if isinstance(model, Generator) else _of_served(model, read)
    check_model(model)
    if isinstance(model, BlackBox):
        probes = ((QUESTION, read), (QUESTION, PROBES[1])) if model.pairs else (read, PROBES[1])
        facts, findings = _facts_of_function(model), check_function(model, *probes)
    elif isinstance(model, Classifier):
        facts, findings = _facts_of_classifier(model) | _lengthy(model, tokens), selfcheck(model, read)
    else:
        facts, findings = _facts(model), [same_again(model, model.encode([read], "word"))]

    def encoded(string: str, *, truncate: bool) -> Encoding:
        probe = model.use.probe if isinstance(model, Classifier) else str
        return model.encode([(QUESTION, string) if model.pairs else probe(string)], "word", truncate)

    facts |= _choices(model, lambda words: encoded(repeated(words), truncate=False))
    return _diagnosis(model, facts | _warnings(model, encoded(read, truncate=True)), findings)


def methods_on(model: LanguageModel | Writer) -> dict[str, list[str]]:
    """For each method the reasons why it does not work on a model, none if it does, without testing what this claims.

    Of a generative model the token that it writes first is meant: it takes a pass.
    """
    reader = _first_token(model, TEXT) if isinstance(model, Writer) else model
    return {name: unfit_of(reader, name) for name in CATALOGUE.names}


def _first_token(model: Writer, text: str) -> LanguageModel:
    """The reader of the token that a model writes after a text, which is what methods see of such a model."""
    prompt = model.prompt(text)
    written = model.continuation(prompt, 1)
    return model.reader(ContinuationEncoder(prompt, written, earlier=False), written.ids)


def _of_served(model: Writer, text: str) -> Diagnosis:
    """Facts about the reader of one token after a prompt that a server reads."""
    reader = _first_token(model, text)
    facts = _facts(reader) | {
        "outputs": "text",
        "classes": ["every token of the vocabulary"],
        "explains": "every output token, and all of them together",
    }
    return _diagnosis(reader, facts, [])


def _of_writer(model: Generator, text: str, tokens: int | None) -> Diagnosis:
    """Facts about the reader of one written token."""
    reader = _first_token(model, text)
    assert isinstance(reader, Classifier)
    facts = _facts_of_classifier(reader) | {
        "outputs": "text",
        "classes": ["every token of the vocabulary"],
        "explains": "every output token, all of them together, or one token rather than another (contrast=); with "
        "earlier=True, earlier output tokens also get scores",
    }
    length = tokens or model.max_tokens or USUAL
    facts |= {f"{length:,} tokens": _told(reader, expected(partial(prompted, model), model.max_tokens, length))}
    facts |= _choices(reader, lambda words: reading(model, repeated(words)).text)
    encoding = reader.encode([text], "word")
    return _diagnosis(reader, facts | _warnings(reader, encoding), [same_again(reader, encoding)])


def _diagnosis(model: LanguageModel, facts: dict[str, object], findings: Sequence[SelfCheckFinding]) -> Diagnosis:
    refuted = disproved(list(findings))
    methods = {name: unfit_of(model, name, refuted) for name in CATALOGUE.names}
    return Diagnosis(facts, tuple(findings), methods)


def _facts(model: LanguageModel) -> dict[str, object]:
    served = {"server": model.ask(AskedAgain).description} if model.offers(AskedAgain) else {}
    return served | {
        "model": model.name,
        "class": type(model).__name__,
        "outputs": model.outputs,
        "classes": list(model.classes),
        "explains": _explained(model),
        "longest input": model.max_tokens,
        "removals": list(model.removals),
    }


def _explained(model: LanguageModel) -> str:
    """What `target` may be, from what the model gives."""
    if model.choosing is not None:
        return f"target={', '.join(model.choosing.targets)}, or all of them (target='each')"
    if isinstance(model, Classifier) and model.head.in_context:
        return "its answer to a question, or another part of the context"
    if model.outputs == "classes":
        return "the predicted class, a class by its name, or one class rather than another (this, not that)"
    if model.outputs == "labels":
        return "a label, or every label that is predicted (target='each')"
    given = "the number of a pair" if model.pairs else "the number"
    try:
        model.ranker  # noqa: B018 - refuses where there is none
    except UnsupportedError:
        return given
    return f"{given}; for a query, why one document comes before another (query, [document, ...])"


def _warnings(model: LanguageModel, encoding: Encoding) -> dict[str, object]:
    """What makes scores less trustworthy, if anything does."""
    warnings = list(dict.fromkeys(why for why in model.withheld.values() if why.startswith("quantised")))
    [unknown] = encoding.unknown(model.unknown_id)
    if unknown.units:
        warnings.append(f"{100 * unknown.share:.0f} % of the text's tokens are not in the vocabulary")
    return {"warnings": warnings} if warnings else {}


def _facts_of_classifier(model: Classifier) -> dict[str, object]:
    return _facts(model) | {
        "class": type(model.core).__name__,
        "device": str(model.device),
        "dtype": str(model.core.dtype).removeprefix("torch."),
    }


def _lengthy(model: Classifier, wanted: int | None) -> dict[str, object]:
    """The cost of one text of `wanted` tokens, as facts."""
    tokens = wanted or model.max_tokens or USUAL
    return {f"{tokens:,} tokens": _told(model, forecast(model, tokens))}


def _told(model: Classifier, cost: Forecast) -> list[str]:
    """Time and memory by what methods do: perturb, follow gradients, read all attention."""
    lines = [f"a pass takes about {cost.evaluation.seconds:.2g} s"]
    named = (("with gradients", cost.gradient), ("with all its attention", cost.attention))
    lines += [f"{name} {e.seconds:.2g} s and {e.kept / 2**30:.2g} GiB" for name, e in named if e is not None]
    lines.append(f"{PASSES} masked texts {PASSES * cost.evaluation.seconds:.2g} s one by one")
    if cost.gradient is not None:
        lines.append(f"{STEPS} gradients {STEPS * cost.gradient.seconds:.2g} s")
    free = free_bytes(model.device)
    if free is not None:
        lines.append(f"{free / 2**30:.2g} GiB are free")
    return lines


def _choices(model: LanguageModel, read: Callable[[int], Encoding]) -> dict[str, object]:
    """The methods that auto chooses for texts of several lengths, as a fact; lengths that the model cannot read are
    left out."""
    choices = []
    for words in LENGTHS:
        try:
            text = read(words)
        except TextTooLongError:
            break
        option = next(Auto().able(model, text, 0, advised(model)))
        choices.append(f"{option.method} for {text.unit_counts[0]} words")
    return {"auto takes": choices}


def _facts_of_function(model: BlackBox) -> dict[str, object]:
    return _facts(model) | {
        "class": "function of pairs of texts" if model.pairs else "function of texts",
        "batch": model.asking.batch,
        "removals": [*model.removals, "a string of yours"],
    }


def _shown(value: object) -> str:
    """Names separated by commas; if there are many, only the first ones."""
    if isinstance(value, list):
        names = ", ".join(map(str, value[:FEW]))
        return names if len(value) <= FEW else f"{names}, and {len(value) - FEW} others"
    return "no limit" if value is None else str(value)


def _plain(finding: SelfCheckFinding) -> dict[str, object]:
    capability = None if finding.capability is None else finding.capability.name
    return {"check": finding.check, "passed": finding.passed, "detail": finding.detail, "capability": capability}
