"""auto: another method, chosen for each text from evidence about methods and the budget."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.combining.advice import advised, harmless, kept
from raison.combining.evidence import evidence
from raison.combining.members import give_back, in_units, run_alone, some_texts
from raison.combining.rule import Option, options
from raison.core.errors import InputError, RaisonError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.note_names import AUTO, COMPLETENESS_GAP
from raison.core.problem import Problem, StandIn
from raison.core.registry import name_of
from raison.core.settings.fields import Setting
from raison.methods import CATALOGUE
from raison.runs.statistics import BACKWARD

ROUNDING = 0.01
"""A gap above this share of the scores' magnitudes is not rounding: the method does not cover every part of the model.
"""

UNREADABLE = (
    "; an audit's recommendation for this model was left out: its file is damaged or of another version (audit again)"
)


@dataclass(frozen=True)
class Auto(Method):
    """Runs the method that is known to explain a text best within a budget of passes, and reports which one and why.

    For each text of n units the first of these that works:

    - shapley_exact, if its 2^n passes are within the `budget`.
    - The method that an audit of this exact model recommended (`raison audit`), if it costs no more than the budget. An
      audit of fewer than 30 texts, or without kernel_shap, is not followed.
    - A method with few passes that the committed records show to be as faithful as kernel_shap with the budget:
      deep_lift, on encoders that classify, from a number of words or tokens on (combining/evidence.json). The model
      must have what it needs, and its terms must add up.
    - coarse_to_fine with `budget` samples, if the text has enough units per sample for it to beat kernel_shap
      (benchmarks/results/few_passes.md).
    - kernel_shap with `budget` samples, and the estimator that had the smallest error at this number
      (benchmarks/results/shapley_error.md).

    Returns (batch, units), signed unless an audit recommended an unsigned method; the scores are those that the chosen
    method gives when it runs alone. The explanation has its name and settings, and the note `auto` has the reason. The
    choice depends on the text, the model, the budget and the cache of audits, and on no other text.

    At most `budget` passes, a backward pass counting as two; those of a method that turned out not to fit the model are
    counted in addition.

    Guarantees what the chosen method guarantees. The records are of small models and English texts.

    Reference: lundberg2017unified.
    """

    budget: Annotated[
        int, Setting(least=2, words="a whole number of at least 2, as passes for the full and the empty text count")
    ] = 100

    reference: ClassVar[str] = "lundberg2017unified"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.RANDOM, Property.ADAPTIVE})
    passes: ClassVar[str] = "at most budget forward, a backward pass counting as two"

    def files(self, model: LanguageModel) -> tuple[Path, ...]:
        place, advice = kept(model), advised(model)
        if place is None:
            return ()
        try:
            # One that is damaged or harmful is not followed.
            followed = [] if advice is None else [CATALOGUE.create(advice)]
        except RaisonError:
            followed = []
        return (place, *(path for method in followed if harmless(method) for path in method.files(model)))

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        """The methods draw from the problem's own generators, as they do when they run alone, not from `rngs`."""
        encoding, advice = problem.encoding, advised(problem.model)
        scores = torch.zeros(len(encoding), max(encoding.unit_counts), dtype=torch.float64)
        tried = [self.able(problem.model, encoding, text, advice) for text in range(len(encoding))]
        taken = {text: next(able) for text, able in enumerate(tried)}
        while taken:
            refused: dict[int, RaisonError | None] = {}
            for call in dict.fromkeys(option.method for option in taken.values()):
                refused |= _run(problem, {text: one for text, one in taken.items() if one.method == call}, scores)
            taken = {}
            for text, error in refused.items():
                following = next(tried[text], None)
                if following is None:
                    assert error is not None, "the last option is taken, or refused with an error"
                    raise error
                taken[text] = following
        return scores

    def cost(self, units: int) -> Cost:
        return Cost(forwards=min(self.budget, 2**units))

    def total_cost(self, units: int, tokens: int = 0) -> Cost:
        """With the passes of cheap methods, which may turn out not to fit the model."""
        known = [one for one in evidence().cheap_methods if one.units <= units and self.budget <= one.passes]
        tried = [CATALOGUE.create(one.method).total_cost(units, tokens) for one in known]
        return sum(tried, self.cost(units))

    def able(self, model: LanguageModel, encoding: Encoding, text: int, advice: str | None) -> Iterator[Option]:
        """The options whose method the model allows, within the budget: the first is taken if it works.

        If an audit's advice is not taken, the reasons of the options after it say why.
        """
        refused = UNREADABLE if advice is None and kept(model) is not None else ""
        for option in options(model, encoding, text, self.budget, advice):
            reason = self._refusal(option, model, encoding.unit_counts[text], encoding.lengths[text])
            if reason is None:
                yield replace(option, why=option.why + refused)
                reason = "it did not work"
            if option.method == advice:
                refused = f"; {advice}, which an audit recommended, was left out: {reason}"

    def _refusal(self, option: Option, model: LanguageModel, units: int, tokens: int) -> str | None:
        """Why an option cannot be taken; None if it can."""
        try:
            method = CATALOGUE.create(option.method)
            if lacking := method.lacking(model):
                return "; ".join(lacking)
            if not harmless(method):
                return "its settings name a file or another method"
            method.check(model)
        except RaisonError as error:
            return str(error)
        cost = method.total_cost(units, tokens)
        if (passes := cost.forwards + BACKWARD * cost.backwards) > self.budget:
            return f"{units} units would take {passes:,} passes, and the budget is {self.budget:,}"
        if method.most_units is not None and units > method.most_units:
            return f"it takes at most {method.most_units} units"
        return None


def _run(problem: Problem, taken: dict[int, Option], scores: Tensor) -> dict[int, RaisonError | None]:
    """Fill in the scores of texts that take the same method; returns those for which it turned out not to work, with
    its error if it has one."""
    texts = list(taken)
    member, part = CATALOGUE.create(taken[texts[0]].method), some_texts(problem, texts)
    try:
        attributed = run_alone(part, member)
    except UnsupportedError as error:
        return dict.fromkeys(texts, error)
    except InputError as error:
        # It may be about one of the texts.
        if len(texts) == 1:
            return {texts[0]: error}
        alone = [_run(problem, {text: taken[text]}, scores) for text in texts]
        return {text: why for one in alone for text, why in one.items()}
    give_back(problem, texts, part, attributed)
    rows = in_units(part, member, attributed.scores)
    refused: dict[int, RaisonError | None] = {}
    for row, text in enumerate(texts):
        notes, size = attributed.ledger.notes[row], float(rows[row].abs().sum())
        gap = notes.get(COMPLETENESS_GAP)
        if taken[text].proven and isinstance(gap, float) and abs(gap) > ROUNDING * size:
            refused[text] = None
            continue
        scores[text, : rows.shape[1]] = rows[row]
        problem.ledger.notes[text] |= notes | {AUTO: f"{name_of(member)}: {taken[text].why}"}
        problem.ledger.stand_ins[text] = StandIn(name_of(member), asdict(member), member.signed)
    return refused
