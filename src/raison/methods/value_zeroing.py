"""Value zeroing: the effect of each token's values on the others, propagated through the layers."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capability import Capability
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.problem import Problem
from raison.integration.distinct_texts import distinct
from raison.models.adapters.offered.zeroed_values import check_layers, value_zeroing_distances
from raison.numerics.attention.context_mixing import followed, shares


@dataclass(frozen=True)
class ValueZeroing(Method):
    """How much each token contributes, through its value vectors, to the representation that the prediction uses.

    C_l[i, j] = 1 - cos(h_l,i, h_l,i without j) (Mohebbi et al. 2023, section 3), with h_l,i the output of layer l at
    token i, and "without j" the same with the value vectors of token j set to zero in that layer's attention; attention
    weights and the layer's input stay unchanged. Rows are rescaled to sum to 1 and multiplied over the layers, without
    an identity: score = r . C_L ... C_1 (the paper's aggregation by rollout). r are the model's prediction rows: the
    first token's, the last one's of a decoder, equal shares where the model pools a mean. Returns (batch, tokens):
    shares that sum to 1 over all tokens, special ones included, never negative.

    t + 1 passes: 1 forward pass, and t passes of every layer alone, where t counts all tokens of the text, special and
    prompt tokens included. The layer's feed-forward part and norms are run again, the layers above are not.

    Guarantees nothing about the prediction: the scores are the same for every target, and the head is ignored. The
    cosine does not see a change of length.

    Differences from the paper: none for encoders with a norm at the end of a layer (h as in its code). For pre-norm
    layers, as in decoders, h is the layer's output on the residual stream, also in the last layer, where the paper's
    code would take the output of the model's final norm. A row in which no zeroing changes anything, undefined in the
    paper, keeps everything to itself.

    Reference: mohebbi2023quantifying.
    """

    reference: ClassVar[str] = "mohebbi2023quantifying"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({ReadableAttention})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.UNSIGNED, Property.PARTIAL})
    passes: ClassVar[str] = "t + 1 forward: 1 full pass and t of single layers; t = all tokens"

    def check(self, model: LanguageModel) -> None:
        check_layers(model, "value_zeroing")

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        encoding, model = problem.encoding, problem.model
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
        rows = model.ask(ReadableAttention).prediction_rows(encoding).cpu().double()
        for first, same in distinct(encoding).items():
            length = encoding.lengths[first]
            layers = [shares(distances)[None] for distances in value_zeroing_distances(model, encoding.select([first]))]
            for text in same:
                scores[text, :length] = followed(rows[text : text + 1, :length], layers)[0]
                problem.ledger.evaluations[text] += length + 1
        return scores

    def cost(self, units: int) -> Cost:
        """For a text whose units are exactly its tokens; each token beyond the number of units needs one more pass."""
        return Cost(forwards=units + 1)

    def total_cost(self, units: int, tokens: int = 0) -> Cost:
        return self.cost(max(units, tokens))
