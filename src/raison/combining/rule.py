"""The method that method="auto" chooses for a text: the options in order, each with its reason in one line."""

from collections.abc import Iterator
from dataclasses import dataclass

from raison.combining.evidence import CheapMethod, evidence
from raison.core.capabilities.decomposition import Anatomy
from raison.core.capabilities.step_logits import StepLogits
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel

USUAL_LIMIT, MOST_UNITS = 16, 24
"""Units per text up to which shapley_exact runs: by default, and at most."""
SHOWN = ("word", "token")
"""The unit of the records behind this rule."""


@dataclass(frozen=True, slots=True)
class Option:
    """A method as a call, and why it is chosen. `proven` if the reason relies on the method fitting the model."""

    method: str
    why: str
    proven: bool = False


def options(
    model: LanguageModel, encoding: Encoding, text: int, budget: int, advice: str | None = None
) -> Iterator[Option]:
    """The options for a text within a number of passes: the first that works is used, and the last always works.

    `advice` is what an audit of this model recommended.
    """
    units = encoding.unit_counts[text]
    if units <= MOST_UNITS and 2**units <= budget:
        limit = "" if units <= USUAL_LIMIT else f"(limit={units})"
        yield Option(f"shapley_exact{limit}", f"all {2**units} sets of its {units} units are within {budget} passes")
        return
    if advice is not None:
        yield Option(advice, "an audit of this model recommended it")
    for known in evidence().cheap_methods:
        if _speaks_of(known, model, encoding, text) and budget <= known.passes:
            yield Option(known.method, _told(known), proven=True)
    few = evidence().few_passes
    if units * few.passes >= few.units * budget:
        yield Option(
            f"coarse_to_fine(samples={budget})",
            f"coarse to fine, because {units} units are many for {budget} passes; no cheaper method is known to be as "
            "faithful here",
        )
    yield Option(
        _with_samples(evidence().estimator(budget).method, budget),
        f"the estimator with the smallest error at {budget} passes; no cheaper method is known to be as faithful here",
    )


def _speaks_of(known: CheapMethod, model: LanguageModel, encoding: Encoding, text: int) -> bool:
    """Whether the records cover texts and models like this one."""
    classifies = model.outputs == "classes" and encoding.spans is None
    alike = classifies and encoding.unit in SHOWN and _architecture(model) == known.architecture
    return alike and encoding.unit_counts[text] >= known.units


def _architecture(model: LanguageModel) -> str | None:
    """Its name in the records: a decoder predicts after each unit; an encoder does not, and is one stack of layers."""
    if model.offers(StepLogits):
        return "decoder"
    return "encoder" if model.offers(Anatomy) else None


def _told(known: CheapMethod) -> str:
    return (
        f"few passes, and in the records (small {known.architecture}s, {known.units} or more units) as faithful as the "
        f"default kernel_shap with up to {known.passes} passes"
    )


def _with_samples(call: str, budget: int) -> str:
    """A call of kernel_shap with `budget` samples."""
    name, _, settings = call.rstrip(")").partition("(")
    return f"{name}({', '.join([f'samples={budget}', *([settings] if settings else [])])})"
