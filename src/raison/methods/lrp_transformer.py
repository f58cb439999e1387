"""Layer-wise relevance propagation for transformers."""

from dataclasses import dataclass
from typing import ClassVar, Literal

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

Activations = Literal["gradient", "identity"]
Features = Literal["sum", "norm"]


@dataclass(frozen=True)
class LrpTransformer(Method):
    """Input times gradient, with attention weights and the divisors of normalisation layers held constant.

    score_t = e_t . d v / d e_t, with e the word embeddings and v the target. The backward pass treats as constants (Ali
    et al. 2022)
        the weights p of attention, y_i = sum_j p_ij x_j     (the paper's rule for attention heads, AH)
        the divisor of a norm, y = (x - mean(x)) / sigma     (its rule for norms, LN); the mean is not constant.
    Returns (batch, tokens), signed, in units of the target.

    1 forward and 1 backward pass.

    `activations`: "gradient" leaves activations and gates as they are, as the paper does. "identity" sends all
    relevance of an activation f(z) to its input (slope f(z) / z) and treats the gate of a gated layer as constant, as
    public ports to models with feed-forward layers do. `features` says how the products of an embedding's features
    become one score: their "sum", or their L2 "norm", which has no sign and is what Progressive Inference compares
    with.

    Guarantees a sum only in special cases: if everything is constant or linear and there are no biases, the scores of
    all tokens (including special and prompt tokens) sum to the target's logit. Examples are attention without biases,
    and a Llama model with activations="identity". Otherwise biases and position embeddings keep their part, and
    activations with their own slope change the sum. Relevance is relative to an embedding of zero. A token's effect
    through the attention weights does not count.

    Differences from the paper: its model has no feed-forward layers, and norms without scale and shift; here the model
    is the user's. Every sqrt or rsqrt in it counts as a norm's divisor, every softmax as attention's. The class is the
    explained one, not the true label. The function that turns the logit into the target (a probability, for example)
    keeps its ordinary gradient.

    Reference: ali2022xai.
    """

    activations: Activations = "gradient"
    features: Features = "sum"

    reference: ClassVar[str] = "ali2022xai"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings, BackwardRules})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.SIGNED})
    passes: ClassVar[str] = "1 forward + 1 backward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        gates: Literal["gradient", "constant"] = "gradient" if self.activations == "gradient" else "constant"
        products = propagated(problem, Relevance("constant", self.activations, gates))
        scores = torch.zeros(problem.encoding.input_ids.shape, dtype=torch.float64)
        for text, product in enumerate(products):
            scores[text, : len(product)] = product.sum(-1) if self.features == "sum" else product.norm(dim=-1)
        return scores

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1, backwards=1)
