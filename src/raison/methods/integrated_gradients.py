"""Integrated gradients."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.dims import Embeddings, PathEmbeddings, Points
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import Capability
from raison.core.problem import Problem
from raison.numerics.quadrature import gauss_legendre

InPlace = Literal["mask", "ellipsis", "unk", "pad"]
Baseline = Literal["removal", "zero"] | InPlace


@dataclass(frozen=True)
class IntegratedGradients(Method):
    """The gradient gathered on the straight way from a text without content to the text.

    score_t = (x_t - b_t) . integral_0^1 d v(b + a (x - b)) / d e_t da (Sundararajan et al. 2017, equation 1), v the
    target, x the word embeddings, b those of the baseline. The integral takes `steps` Gauss-Legendre nodes; products
    are summed over the embedding's features. Returns (batch, tokens), signed, in units of the target. Special tokens
    keep their embedding on the whole path, so that they score zero.

    `baseline`: "removal" replaces every unit as the problem's removal does (deletion has no embedding: the model's
    first removal in place stands in), "mask", "ellipsis", "unk" and "pad" name a token, "zero" is a vector of zeros.
    The note `baseline` says which it was.

    steps + 2 forward and steps backward passes, the two for the ends of the path shared with other methods
    (baseline="zero": one backward pass more). The note `completeness_gap` is the sum of the scores minus
    (v(x) - v(b)): the error of the quadrature, near zero for a smooth model, and larger where `steps` are too few.

    Guarantees that sum only up to the gap, and relative to its own baseline: the value of the fully removed text where
    the baseline is the problem's removal. Scores depend on the baseline.

    Differences from the paper: Gauss-Legendre nodes instead of a Riemann sum (section 5), a token instead of zero
    vectors as the default baseline.

    Reference: sundararajan2017axiomatic.
    """

    steps: int = 50
    baseline: Baseline = "removal"

    reference: ClassVar[str] = "sundararajan2017axiomatic"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.EMBEDDINGS})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.SIGNED, Property.COMPLETE, Property.DUMMY}
    )
    passes: ClassVar[str] = "steps + 2 forward + steps backward (one more backward with baseline='zero')"

    def __post_init__(self) -> None:
        if type(self.steps) is not int or self.steps < 1:
            raise InputError(
                f"steps of integrated_gradients cannot be {self.steps!r}: it counts points on a path. "
                "Give a whole number from 1 on, such as 50."
            )
        known = ("removal", "zero", *get_args(InPlace))
        if self.baseline not in known:
            raise UnknownNameError("baseline of integrated_gradients", self.baseline, known)

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        encoding = problem.encoding
        name = self._name(problem)
        ends = problem.model.embed(encoding).detach()
        starts = _starts(problem, ends, name)

        def path(text: int, points: Points) -> PathEmbeddings:
            share = points.to(ends)[:, None, None]
            return starts[text] + share * (ends[text] - starts[text])

        positions, weights = gauss_legendre(self.steps)
        if name == "zero":
            # No removal gives this baseline's value: one more point, which counts nothing in the integral.
            positions, weights = (torch.cat([part, part.new_zeros(1)]) for part in (positions, weights))
        gradients, on_path = problem.path_gradients(path, positions, weights)
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
        for text, gradient in enumerate(gradients):
            way = (ends[text] - starts[text])[: len(gradient)].cpu().double()
            scores[text, : len(gradient)] = (way * gradient.double()).sum(-1)
        change = _change(problem, name, on_path[:, -1])
        problem.note("completeness_gap", (scores.sum(1) - change).tolist())
        problem.note("baseline", [name] * len(encoding))
        return scores

    def cost(self, units: int) -> Cost:
        return Cost(forwards=self.steps + 2, backwards=self.steps + (self.baseline == "zero"))

    def _name(self, problem: Problem) -> str:
        """The baseline in use: "zero" or a removal in place that the model has."""
        if self.baseline == "zero":
            return "zero"
        wanted = problem.removal if self.baseline == "removal" else self.baseline
        available = [removal for removal in problem.model.removals if removal in get_args(InPlace)]
        if wanted in available:
            return wanted
        if self.baseline == "removal" and available:
            return available[0]
        raise UnsupportedError(
            f"integrated_gradients has no baseline '{self.baseline}' here",
            [
                f"the tokenizer has no {wanted} token"
                if self.baseline != "removal"
                else "the tokenizer has no token for it"
            ],
            f"Use baseline={' or '.join(repr(choice) for choice in (*available, 'zero'))}.",
        )


def _starts(problem: Problem, ends: Embeddings, name: str) -> Embeddings:
    """Embeddings of the baseline; tokens of no unit keep their own."""
    if name == "zero":
        start = torch.zeros_like(ends)
    else:
        start = problem.model.embed(problem.model.removed(problem.encoding, name)).detach()
    return torch.where(problem.encoding.scored.to(ends.device)[..., None], start, ends)


def _change(problem: Problem, name: str, zero: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """v(x) - v(b) per text; `zero` is the value at b where the baseline is zero."""
    counts = problem.encoding.unit_counts
    if name == "zero":
        full = problem.values([torch.ones(1, n, dtype=torch.bool) for n in counts])
        return torch.cat(full) - zero.double()
    # The same ledger and store under the baseline's removal.
    ends = replace(problem, removal=name).values(
        [torch.tensor([[True], [False]]).expand(2, n).contiguous() for n in counts]
    )
    return torch.stack([values[0] - values[1] for values in ends])
