"""Generic attention explainability (GAE): attention weighted by its gradient, propagated through the layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.attention_layers import AttentionLayers
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.capability import Capability
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.problem import Problem
from raison.integration.distinct_texts import distinct
from raison.models.adapters.offered.attention_gradients import Turn, attention_gradients, check_one_pass
from raison.numerics.attention.context_mixing import gathered, gathered_across, head_mean


@dataclass(frozen=True)
class GenericAttention(Method):
    """Attention propagated through the layers, with each head weighted by its gradient for the target.

    R_0 = I, M_l = mean over heads of relu(dv/dA_l * A_l), R_l = R_{l-1} + M_l R_{l-1}, score = r . (R_L - I) (Chefer et
    al. 2021, equations 1, 5 and 6), with A_l layer l's attention probabilities, (heads, query, key), v the target (the
    paper's is a logit: of="logit"), and r the model's prediction rows: the first token's, the last one's of a decoder,
    equal shares where the model pools a mean. Returns (batch, tokens), never negative, in units of the target.

    An encoder-decoder has R^ee and R^dd of its two stacks, which start as I, and R^de from the decoder's positions to
    the encoder's, which starts as 0. Attention of a stack to itself follows the rule above, and the decoder's also
    gives R^de = R^de + M R^de (equation 7). Attention of the decoder to the encoder gives R^de = R^de + N(R^dd)^T M
    N(R^ee), with N(R) = I + the rows of R - I rescaled to sum to 1 (equations 8 to 10). The score is r . R^de for the
    encoder's positions and r . (R^dd - I) for the decoder's. A classifier's decoder reads the text again: a token's
    score is the sum over its two positions.

    1 forward and 1 backward pass; several targets of a text share the forward one. Finding the prediction rows can cost
    the model two more for the whole batch.

    Guarantees no sum and no sign: contributions of attention against the target are cut off. Values and feed-forward
    layers count only as part of the gradient.

    The identity that R starts from is subtracted. A token's own state, which every layer carries on, would otherwise be
    the only large score of the row that predicts. If that row belongs to a special token, it is not scored anyway. The
    last token of a decoder without special tokens is scored by what attention contributes, without the residual path.

    Differences from the paper: it sets the predicting row's own entry to zero; here only the identity is subtracted,
    because the last token of a decoder is a part of the text. Its rules for two streams that attend to one another are
    implemented as far as an encoder-decoder needs them. Its published code can put relevance propagated back to A in
    A's place (use_lrp), and a variant in other work rescales rows of M_l + I and adds up columns; neither is the
    paper's.

    Reference: chefer2021generic.
    """

    reference: ClassVar[str] = "chefer2021generic"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({AttentionLayers, WordEmbeddings})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.UNSIGNED})
    passes: ClassVar[str] = "1 forward + 1 backward"

    def check(self, model: LanguageModel) -> None:
        check_one_pass(model, "generic_attention")

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        encoding, model = problem.encoding, problem.model
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
        # The rows that predict are found once, and not batch by batch.
        model.ask(AttentionLayers).positions(encoding.select([0]))
        same = distinct(encoding)
        firsts = list(same)

        def run(rows: list[int]) -> None:
            self._score(problem, [same[firsts[row]] for row in rows], scores)

        for _ in model.ask(Passes).in_batches(encoding.select(firsts), run):
            """Each batch writes its own scores."""
        for text in range(len(encoding)):
            problem.ledger.gradients[text] += 1
        problem.count_forward()
        return scores

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1, backwards=1)

    def _score(self, problem: Problem, texts: Sequence[Sequence[int]], scores: Float[Tensor, "batch scored"]) -> None:
        """Score rows of the same text together: the first target of each text, then the second, and so on."""
        model, part = problem.model, problem.encoding.select([same[0] for same in texts])
        positions = model.ask(AttentionLayers).positions(part)
        shares, width = positions.rows.cpu().double(), positions.present.shape[1]
        turns = []
        for number in range(max(map(len, texts))):
            rows = [row for row, same in enumerate(texts) if number < len(same)]
            turns.append(Turn(rows, problem.target.rows(torch.as_tensor([texts[row][number] for row in rows]))))
        for number, layers in enumerate(attention_gradients(model, part, turns)):
            weighted = [
                head_mean(block.placed((slope * block.probabilities).relu(), width), positions.present)
                for block, slope in layers
            ]
            across = positions.border
            relevance = gathered_across(shares, weighted, across) if across else gathered(shares, weighted)
            relevance, batch_rows = positions.to_tokens(relevance), list(turns[number].rows)
            scores[[texts[row][number] for row in batch_rows], : relevance.shape[1]] = relevance[batch_rows]
