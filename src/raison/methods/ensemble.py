"""Ensemble: the mean of several methods' scores."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from raison.combining.members import in_units, run_alone
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.problem import Attributed, Problem
from raison.core.registry import label_of, refuse_repeated
from raison.core.settings.fields import Setting
from raison.methods import CATALOGUE

Normalisation = Literal["absolute", "sum"]

GROUPS = {
    "top3": ("lime", "kernel_shap", "integrated_gradients"),
    "all": (
        "lime",
        "kernel_shap",
        "integrated_gradients",
        "saliency",
        "input_x_gradient",
        "attention_average",
        "attention_rollout(residual=False, queries='all')",
    ),
}
"""The two ensembles of the thesis, with its variants of the methods."""

CANCELLED = 1e-6
"""A sum of scores below this share of their magnitudes is a rounding error."""


@dataclass(frozen=True)
class Ensemble(Method):
    """The mean of several methods' scores, each scaled to the same size on each text.

    score_i = 1/k sum_m s_mi / N_m over the k members m, with s_m the scores of the units (the thesis Assessing the
    Interpretability of Large Language Models, section 3.4). Returns (batch, units), without a unit.

    - `normalise="absolute"`: N_m = sum_j |s_mj|. Signs are kept, and cancellation cannot make a member large.
    - `normalise="sum"`: N_m = sum_j s_mj, as the thesis says. A member whose scores sum to less than zero then changes
      all its signs (the note `turned` names it); one whose scores cancel out is an error.

    A member with no score other than 0 counts as zeros.

    `methods` are names or calls of other methods, or "top3" (lime, kernel_shap, integrated_gradients: the default) or
    "all", the thesis's seven. A random member draws what it draws alone under the same seed. The note `members` holds
    the members' notes.

    The passes are those of the members together; a removal that several of them evaluate counts once. A member that is
    also compared on its own is not computed again.

    Signs are reliable only if all members are signed. Unsigned members (saliency, attention) say how much a unit
    matters, and so raise units that signed members find to speak against the target. Mix them for a ranking by
    importance, not for signs. Guarantees no sum: with "absolute", the magnitudes sum to at most 1.

    Differences from the thesis: it scales so that scores sum to 1 (normalise="sum"). The default scales by absolute
    values, because the signed scores of a text may sum to nearly 0 or to less.

    Reference: oxford2022assessing.
    """

    methods: Annotated[
        tuple[str, ...] | list[str] | str,
        Setting(words="names or calls of two methods or more, such as ('lime', 'occlusion'), or 'top3' or 'all'"),
    ] = "top3"
    normalise: Normalisation = "absolute"

    reference: ClassVar[str] = "oxford2022assessing"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.RANDOM, Property.ADAPTIVE})
    passes: ClassVar[str] = "at most the sum of its members'"

    def consistent(self) -> None:
        _members(self.methods)

    @property
    def signed(self) -> bool:
        """One signed member is enough for scores below zero."""
        return any(member.signed for member in _members(self.methods))

    @property
    def trained(self) -> bool:
        return any(member.trained for member in _members(self.methods))

    @property
    def most_units(self) -> int | None:
        """As many as every member takes."""
        bounds = [member.most_units for member in _members(self.methods)]
        return min((bound for bound in bounds if bound is not None), default=None)

    def files(self, model: LanguageModel) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(path for member in _members(self.methods) for path in member.files(model)))

    def check(self, model: LanguageModel) -> None:
        members = _members(self.methods)
        reasons = [
            f"{label_of(member)} does not work here: {reason}" for member in members for reason in member.lacking(model)
        ]
        if reasons:
            raise UnsupportedError(
                f"this ensemble does not work on {model.name}", reasons, "Leave these members out: methods=(...)."
            )
        for member in members:
            member.check(model)

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        """The members draw from the problem's own generators, as they do when they run alone, not from `rngs`."""
        members = _members(self.methods)
        batch = len(problem.encoding)
        notes: list[dict[str, object]] = [{} for _ in range(batch)]
        turned: list[list[str]] = [[] for _ in range(batch)]
        total = torch.zeros(batch, max(problem.encoding.unit_counts), dtype=torch.float64)
        results = [run_alone(problem, member) for member in members]
        _count(problem, results)
        for member, alone in zip(members, results, strict=True):
            scores, ledger = in_units(problem, member, alone.scores), alone.ledger
            sizes = self._sizes(scores, member, problem)
            total += scores / sizes[:, None]
            for text in range(batch):
                notes[text] |= {label_of(member): ledger.notes[text]} if ledger.notes[text] else {}
                turned[text] += [label_of(member)] if sizes[text] < 0 else []
        problem.note("members", notes)
        if any(turned):
            problem.note("turned", turned)
        return total / len(members)

    def cost(self, units: int) -> Cost:
        return self.total_cost(units)

    def total_cost(self, units: int, tokens: int = 0) -> Cost:
        return sum((member.total_cost(units, tokens) for member in _members(self.methods)), Cost())

    def _sizes(self, scores: Float[Tensor, "batch units"], member: Method, problem: Problem) -> Float[Tensor, " batch"]:
        """N of each text; 1 where there is nothing to scale."""
        magnitudes = scores.abs().sum(1)
        sizes = magnitudes if self.normalise == "absolute" else scores.sum(1)
        for text, (size, magnitude) in enumerate(zip(sizes.tolist(), magnitudes.tolist(), strict=True)):
            if abs(size) < CANCELLED * magnitude:
                raise InputError(
                    f"ensemble(normalise='sum') divides by the sum of {label_of(member)}'s scores, and on "
                    f"{str(problem.encoding.texts[text])!r:.60} they cancel out: use normalise='absolute'."
                )
        return sizes.masked_fill(magnitudes == 0, 1.0)


def _count(problem: Problem, members: Sequence[Attributed]) -> None:
    """Record the members' passes in the ledger; keeps that several of them requested count once."""
    keys = frozenset().union(*(member.counted for member in members))
    problem.counted.update(keys)
    repeated = Counter(key.text for member in members for key in member.counted)
    once = Counter(key.text for key in keys)
    for text in range(len(problem.encoding)):
        problem.ledger.evaluations[text] += sum(member.ledger.evaluations[text] for member in members)
        problem.ledger.evaluations[text] -= repeated[text] - once[text]
        problem.ledger.gradients[text] += sum(member.ledger.gradients[text] for member in members)


def _members(methods: Sequence[str]) -> list[Method]:
    """The members. InputError or UnknownNameError for what cannot be averaged."""
    if isinstance(methods, str):
        if methods not in GROUPS:
            raise UnknownNameError("ensemble", methods, GROUPS)
        methods = GROUPS[methods]
    members = []
    for spec in methods:
        if spec.partition("(")[0].strip() == "ensemble":
            raise InputError("an ensemble cannot be a member of an ensemble: name its members instead.")
        members.append(CATALOGUE.create(spec))
    refuse_repeated("the ensemble's member", map(label_of, members))
    if len(members) < 2:
        raise InputError(
            f"an ensemble of {len(members)} is not a mean: name at least two methods, such as {GROUPS['top3']}."
        )
    return members
