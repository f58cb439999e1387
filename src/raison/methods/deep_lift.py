"""DeepLIFT: finite differences from a baseline, propagated back through every part of the model."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.rules import BackwardRules
from raison.core.capability import Capability
from raison.core.errors import InputError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.note_names import BASELINE, COMPLETENESS_GAP
from raison.core.problem import Problem
from raison.integration.baselines import Baseline, baseline_embeddings, baseline_name
from raison.integration.relevance import differences
from raison.integration.repeated_texts import own_embeddings


@dataclass(frozen=True)
class DeepLift(Method):
    """Attributes the difference between the values of a text and of a baseline to the tokens.

    score_t = (x_t - b_t) . m_t, with x the word embeddings, b those of the baseline, and m the multipliers. m is 1 at
    the target and is passed back through the model by the chain rule, with finite differences in place of slopes
    (Shrikumar et al. 2017, equations 2 and 3, and the rescale rule of section 3.5). A prime marks the baseline's run:
        y = f(z), f of one number (GELU, SiLU, tanh, ...):   m_z = m_y (y - y') / (z - z')
        y = a b (attention's two products, gates):           m_a = m_y (b + b') / 2, m_b = m_y (a + a') / 2
        s = softmax(z):   m_z = L m_s - w sum(L m_s), L the logarithmic mean of s and s', w the factors of log sum exp
        layer and RMS norms: as their centring, square, mean, root and product, each by the rules above
    Products are summed over the embedding's features. Returns (batch, tokens), signed, in units of the target. Special
    tokens keep their embedding, so they score zero.

    `baseline`: "removal" replaces every unit as the problem's removal does (for deletion, which has no embedding, the
    model's first removal in place); "mask", "ellipsis", "unk" and "pad" name a token; "zero" is a vector of zeros. The
    note `baseline` says which was used. With zeros alone, an RMS norm (Llama, Qwen, Mistral) divides by the root of its
    epsilon, and its differences grow with every layer until no digit is left: refused where that happens.

    2 forward and 1 backward pass, text and baseline in one batch. On long texts that a causal model reads, the backward
    pass computes the layers again, one at a time, so that memory grows nearly as the length. The note
    `completeness_gap` is the sum of the scores minus (v(x) - v(b)). It is a rounding error if every nonlinear call of
    the model has a rule, as in all families of docs/families.md that it runs on. A larger gap reveals a call without
    one.

    Guarantees that sum only up to the gap, and relative to its own baseline (the fully removed text, if the baseline is
    the problem's removal). Two networks that compute the same function in different steps may get different scores, and
    a token that changes nothing may score other than zero.

    Differences from the paper: it has no rule for products, softmax and normalisation; the rules above are the
    symmetric ones that keep the sum. Nothing is divided by a difference near zero: the points are moved apart by 1e-5
    of their size. The RevealCancel rule is left out. captum's DeepLift knows only activation modules (ReLU, tanh, ...,
    and a softmax rule that keeps no sum) and takes plain gradients of everything else, including GELU, softmax and
    norms in Hugging Face models, so its scores do not sum to the difference.

    Reference: shrikumar2017learning.
    """

    baseline: Baseline = "removal"

    reference: ClassVar[str] = "shrikumar2017learning"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings, BackwardRules})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.SIGNED, Property.COMPLETE})
    passes: ClassVar[str] = "2 forward + 1 backward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        name = baseline_name(problem, "deep_lift", self.baseline)
        ends = own_embeddings(problem)
        scores, change = differences(problem, baseline_embeddings(problem, ends, name), ends)
        gaps = scores.sum(1) - change.to(scores)
        if name == "zero" and not bool((gaps.abs() <= 1 + change.to(gaps).abs()).all()):
            raise InputError(
                "deep_lift(baseline='zero') has no usable numbers on this model: the norms of its layers divide by "
                f"almost nothing where all embeddings are zero (the scores miss the difference by {_largest(gaps):.1g}"
                "). Use baseline='removal'."
            )
        problem.note(COMPLETENESS_GAP, gaps.tolist())
        problem.note(BASELINE, [name] * len(problem.encoding))
        return scores

    def cost(self, units: int) -> Cost:
        return Cost(forwards=2, backwards=1)


def _largest(gaps: Float[Tensor, " batch"]) -> float:
    """The largest gap; infinite if one is not a number."""
    return float(gaps.abs().nan_to_num(torch.inf).max())
