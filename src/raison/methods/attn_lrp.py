"""AttnLRP: attention-aware layer-wise relevance propagation."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import Capability
from raison.core.problem import Problem
from raison.core.rules import Relevance
from raison.integration.relevance import propagated


@dataclass(frozen=True)
class AttnLrp(Method):
    """Relevance that goes back through softmax, products and activations, computed as input times a changed gradient.

    score_t = e_t . g_t, e the word embeddings and g the gradient of the target in which (Achtibat et al. 2024)
        a linear layer has its gradient                  (the epsilon rule for epsilon = 0)
        an activation f(z) has the slope f(z) / z        (the identity rule; also for the tanh of a pooler)
        a product of two states, of attention (queries and keys, weights and values) or of a gated feed-forward layer,
            gives half of its gradient to each factor    (the uniform rule)
        a softmax is differentiated                      (R_i = x_i (R'_i - s_i sum_j R'_j))
        a norm's divisor is constant, its mean is not    (the identity rule)
    so that queries and keys get a quarter, values a half. Returns (batch, tokens), signed, in units of the target. 1
    forward and 1 backward pass.

    Guarantees no sum: biases and position embeddings take their part, and the softmax's rule is a first-order one.
    Relevance is that of the embedding as against zero. The authors warn that scores of Qwen3 can be skewed by single
    tokens, and advise a contrastive target (target=(this, not_that)) for GPT-2.

    Differences from the paper: epsilon is zero, as in the authors' own fast version; where z = 0 an activation passes
    nothing on. Activations that are not zero at zero (sigmoid, softplus) keep their slope. Every sqrt or rsqrt in the
    model counts as a norm's divisor. The slope of what is asked of the logit (a probability, say) is a plain one.

    Reference: achtibat2024attnlrp.
    """

    reference: ClassVar[str] = "achtibat2024attnlrp"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.EMBEDDINGS, Capability.RULES})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.SIGNED})
    passes: ClassVar[str] = "1 forward + 1 backward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        products = propagated(problem, Relevance("shared", "identity", "shared"))
        scores = torch.zeros(problem.encoding.input_ids.shape, dtype=torch.float64)
        for text, own in enumerate(products):
            scores[text, : len(own)] = own.sum(-1)
        return scores

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1, backwards=1)
