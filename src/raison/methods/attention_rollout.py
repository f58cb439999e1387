"""Attention rollout: attention propagated through the layers."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.passes import Passes
from raison.core.capability import Capability
from raison.core.dims import Attention, Embeddings
from raison.core.encoding import Encoding
from raison.core.errors import InputError, UnknownNameError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.problem import Problem

Queries = Literal["prediction", "all"]


@dataclass(frozen=True)
class AttentionRollout(Method):
    """Propagates attention through the layers, as if attention alone moved information between positions.

    score = r . B_L ... B_1 with B_l = (A_l + I) / 2, rows rescaled to sum to 1 (Abnar and Zuidema 2020, equation 1),
    A_l the mean over heads of layer l's attention (query x key) and r the model's prediction rows. Returns (batch,
    tokens): shares that sum to 1 over all tokens, special ones included, never negative.

    1 forward pass. Finding the prediction rows can cost the model one more for the whole batch.

    Guarantees nothing about the prediction: the scores are the same for every target, and values, feed-forward layers
    and the head are ignored.

    `residual=False` leaves out the identity: B_l = A_l. `queries="all"` takes the mean over all rows for r. Both
    together are the rollout of the thesis Assessing the Interpretability of Large Language Models, section 2.2.2.3.

    Differences from the paper: r is the first token's row for a model that predicts from it, the last token's for a
    decoder, and the mean where the model pools a mean. The paper reads the first token's row.

    Reference: abnar2020quantifying.
    """

    residual: bool = True
    queries: Queries = "prediction"

    reference: ClassVar[str] = "abnar2020quantifying"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({ReadableAttention})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.UNSIGNED, Property.DIFFERENTIABLE}
    )
    passes: ClassVar[str] = "1 forward"

    def __post_init__(self) -> None:
        if type(self.residual) is not bool:
            raise InputError(
                f"residual of attention_rollout cannot be {self.residual!r}: it says whether the identity is added to "
                "the attention. Give True or False."
            )
        if self.queries not in get_args(Queries):
            raise UnknownNameError("queries of attention_rollout", self.queries, get_args(Queries))

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        encoding, model = problem.encoding, problem.model
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
        weights = self._rows(model, encoding)

        def run(rows: list[int]) -> Tensor:
            part = encoding.select(rows)
            with torch.no_grad():
                return self._followed(model, part, weights[rows, : part.input_ids.shape[1]])

        for rows, found in model.ask(Passes).in_batches(encoding, run):
            scores[rows, : found.shape[1]] = found
        problem.count_forward()
        return scores

    def scores_at(self, problem: Problem, embeds: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.scores_at."""
        rows = self._rows(problem.model, problem.encoding)
        with torch.enable_grad():
            return self._followed(problem.model, problem.encoding, rows, embeds)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)

    def _rows(self, model: LanguageModel, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
        """How much each row of the product counts, summing to 1."""
        if self.queries == "prediction":
            return model.ask(ReadableAttention).prediction_rows(encoding)
        own = encoding.attention_mask.double()
        return own / own.sum(1, keepdim=True)

    def _followed(
        self,
        model: LanguageModel,
        part: Encoding,
        rows: Float[Tensor, "batch tokens"],
        embeds: Embeddings | None = None,
    ) -> Float[Tensor, "batch tokens"]:
        with model.ask(ReadableAttention).tap() as tap:
            model.ask(Passes).logits(part, embeds)
        # From the last layer down: a row times a matrix per layer instead of a product of matrices.
        flow = rows[:, None]
        for layer in sorted(tap.probabilities, reverse=True):
            mixing = self._mixing(tap.probabilities[layer], part.attention_mask)
            flow = flow.to(mixing) @ mixing
        return flow[:, 0].cpu().double()

    def _mixing(self, attention: Attention, own: Bool[Tensor, "batch tokens"]) -> Float[Tensor, "batch query key"]:
        """One layer's matrix B; rows and columns of padding are zero, so that nothing of it can enter the product."""
        mean = attention.mean(1)
        mean = mean.to(torch.promote_types(mean.dtype, torch.float32))
        own = own.to(mean.device)
        mean = mean.masked_fill(~(own[:, :, None] & own[:, None, :]), 0)
        if not self.residual:
            return mean
        mixed = (mean + torch.diag_embed(own.to(mean))) / 2
        return mixed / mixed.sum(-1, keepdim=True).clamp_min(torch.finfo(mixed.dtype).tiny)
