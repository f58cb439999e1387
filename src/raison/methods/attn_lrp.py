"""AttnLRP: attention-aware layer-wise relevance propagation."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.rules import BackwardRules
from raison.core.capability import Capability
from raison.core.internals.rules import Relevance
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.integration.relevance import propagated


@dataclass(frozen=True)
class AttnLrp(Method):
    """Relevance propagated back through softmax, products and activations, computed as input times a modified gradient.

    score_t = e_t . g_t, with e the word embeddings and g the gradient of the target under these rules (Achtibat et al.
    2024):
        linear layer: its gradient                           (the epsilon rule for epsilon = 0)
        activation f(z): the slope f(z) / z                  (the identity rule; also for the tanh of a pooler)
        product of two states, in attention (queries and keys, weights and values) or in a gated feed-forward layer:
            half of its gradient to each factor              (the uniform rule)
        softmax: its gradient                                (R_i = x_i (R'_i - s_i sum_j R'_j))
        norm: the divisor is constant, the mean is not       (the identity rule)
    Queries and keys therefore get a quarter each, values a half. Returns (batch, tokens), signed, in units of the
    target.

    1 forward and 1 backward pass.

    Guarantees no sum: biases and position embeddings absorb a part, and the softmax's rule is a first-order one.
    Relevance is relative to an embedding of zero. The authors warn that scores of Qwen3 can be skewed by single tokens,
    and advise a contrastive target (target=(this, not_that)) for GPT-2.

    Differences from the paper: epsilon is zero, as in the authors' own fast version; where z = 0, an activation passes
    nothing on. Activations that are not zero at zero (sigmoid, softplus) keep their slope. Every sqrt or rsqrt in the
    model counts as a norm's divisor. The function that turns the logit into the target (a probability, for example)
    keeps its ordinary gradient.

    Reference: achtibat2024attnlrp.
    """

    reference: ClassVar[str] = "achtibat2024attnlrp"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings, BackwardRules})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.SIGNED})
    passes: ClassVar[str] = "1 forward + 1 backward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        products = propagated(problem, Relevance("shared", "identity", "shared"))
        scores = torch.zeros(problem.encoding.input_ids.shape, dtype=torch.float64)
        for text, product in enumerate(products):
            scores[text, : len(product)] = product.sum(-1)
        return scores

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1, backwards=1)
