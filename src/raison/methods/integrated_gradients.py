"""Integrated gradients."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capability import Capability
from raison.core.dims import Embeddings
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.note_names import BASELINE, COMPLETENESS_GAP
from raison.core.problem import Problem
from raison.integration.baselines import Baseline, Steps, baseline_embeddings, baseline_name
from raison.integration.differentiable_gradients import integrate_at
from raison.integration.repeated_texts import own_embeddings
from raison.integration.straight_path import integrate
from raison.numerics.gradients.quadrature import gauss_legendre


@dataclass(frozen=True)
class IntegratedGradients(Method):
    """Integrates the gradient along the straight path from a text without content to the text.

    score_t = (x_t - b_t) . integral_0^1 d v(b + a (x - b)) / d e_t da (Sundararajan et al. 2017, equation 1), with v
    the target, x the word embeddings, and b those of the baseline. The integral uses `steps` Gauss-Legendre nodes;
    products are summed over the embedding's features. Returns (batch, tokens), signed, in units of the target. Special
    tokens keep their embedding on the whole path, so they score zero.

    `baseline`: "removal" replaces every unit as the problem's removal does (for deletion, which has no embedding, the
    model's first removal in place); "mask", "ellipsis", "unk" and "pad" name a token; "zero" is a vector of zeros. The
    note `baseline` says which was used.

    steps + 2 forward and steps backward passes; the two for the ends of the path are shared with other methods
    (baseline="zero": one backward pass more). The note `completeness_gap` is the sum of the scores minus (v(x) - v(b)),
    the error of the quadrature: near zero for a smooth model, larger if `steps` are too few.

    Guarantees that sum only up to the gap, and relative to its own baseline (the fully removed text, if the baseline is
    the problem's removal). Scores depend on the baseline.

    Differences from the paper: Gauss-Legendre nodes instead of a Riemann sum (section 5); a token instead of zero
    vectors as the default baseline.

    Reference: sundararajan2017axiomatic.
    """

    steps: Steps = 50
    baseline: Baseline = "removal"

    reference: ClassVar[str] = "sundararajan2017axiomatic"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {
            Property.TOKENWISE,
            Property.SIGNED,
            Property.COMPLETE,
            Property.DUMMY,
            Property.PATH,
            Property.DIFFERENTIABLE,
        }
    )
    passes: ClassVar[str] = "steps + 2 forward + steps backward (one more backward with baseline='zero')"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        name = baseline_name(problem, "integrated_gradients", self.baseline)
        ends = own_embeddings(problem)
        positions, weights = gauss_legendre(self.steps)
        if name == "zero":
            # No removal gives this baseline's value: one more point, which counts nothing in the integral.
            positions, weights = (torch.cat([part, part.new_zeros(1)]) for part in (positions, weights))
        scores, on_path = integrate(problem, baseline_embeddings(problem, ends, name), ends, positions, weights)
        change = _change(problem, name, on_path[:, -1])
        problem.note(COMPLETENESS_GAP, (scores.sum(1) - change).tolist())
        problem.note(BASELINE, [name] * len(problem.encoding))
        return scores

    def attribute_from(self, problem: Problem, start: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.attribute_from. `steps` forward and backward passes; no notes, because v(start) is unknown."""
        ends = own_embeddings(problem)
        return integrate(problem, start.to(ends), ends, *gauss_legendre(self.steps))[0]

    def scores_at(self, problem: Problem, embeds: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.scores_at. The baseline stays where it is."""
        name = baseline_name(problem, "integrated_gradients", self.baseline)
        return integrate_at(problem, baseline_embeddings(problem, embeds, name), embeds, *gauss_legendre(self.steps))

    def cost(self, units: int) -> Cost:
        return Cost(forwards=self.steps + 2, backwards=self.steps + (self.baseline == "zero"))


def _change(problem: Problem, name: str, zero: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """v(x) - v(b) per text; `zero` is the value at b where the baseline is zero."""
    counts = problem.encoding.unit_counts
    if name == "zero":
        full = problem.values(problem.encoding.whole)
        return torch.cat(full) - zero.double()
    # The same ledger and store under the baseline's removal.
    ends = replace(problem, removal=name).values(
        [torch.tensor([[True], [False]]).expand(2, n).contiguous() for n in counts]
    )
    return torch.stack([values[0] - values[1] for values in ends])
