"""Methods whose scores come from the attention of one pass: in batches, or differentiable for given embeddings."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.answer_attention import AnswerAttention
from raison.core.capabilities.attention_layers import AttentionLayers, Positions
from raison.core.capabilities.passes import Passes
from raison.core.capability import Capability
from raison.core.dims import Attention, Embeddings
from raison.core.inputs.encoding import Encoding
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.integration.distinct_texts import in_distinct_batches

Present = Bool[Tensor, "batch positions"]
Queries = Literal["all", "prediction"]
"""The rows of the attention that are read: those of all tokens, or those that the model predicts from."""
Rows = Float[Tensor, "batch positions"]


class AttentionReading(Method):
    """A method whose scores come from the attention of one pass. Its settings include `queries`."""

    needs: ClassVar[frozenset[type[Capability]]] = frozenset({AttentionLayers})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.UNSIGNED, Property.DIFFERENTIABLE}
    )
    passes: ClassVar[str] = "1 forward"

    @property
    @abstractmethod
    def queries(self) -> Queries:
        """The rows that are read."""

    @abstractmethod
    def read(self, layers: Sequence[Attention], present: Present, rows: Rows) -> Rows:
        """Scores from the attention of each layer, the mask of non-padding positions and the weight of each row."""

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        """One forward pass for all targets of a text, and for all tokens of an output that a decoder writes."""
        encoding = problem.encoding
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
        self._find_rows(problem)
        if problem.model.offers(AnswerAttention) and encoding.nested:
            for text, of_text in enumerate(self._of_beginnings(problem)):
                scores[text, : len(of_text)] = of_text
            problem.count_forward()
            return scores

        def run(texts: list[int]) -> Tensor:
            with torch.no_grad():
                return self._scores(problem, encoding.select(texts))

        for texts, places, of_texts in in_distinct_batches(problem, run):
            scores[texts, : of_texts.shape[1]] = of_texts[places]
        problem.count_forward()
        return scores

    def scores_at(self, problem: Problem, embeds: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.scores_at."""
        self._find_rows(problem)
        with torch.enable_grad():
            return self._scores(problem, problem.encoding, embeds)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)

    def _find_rows(self, problem: Problem) -> None:
        """Find the rows that predict once, and not batch by batch."""
        problem.model.ask(AttentionLayers).positions(problem.encoding.select([0]))

    def _of_beginnings(self, problem: Problem) -> list[Float[Tensor, " _tokens"]]:
        """The scores of each text from a pass of the longest, in which a decoder attends as in each text alone."""
        encoding, attention, passes = problem.encoding, problem.model.ask(AttentionLayers), problem.model.ask(Passes)
        longest = encoding.select([max(range(len(encoding)), key=encoding.lengths.__getitem__)])

        def run(_: list[int]) -> list[Float[Tensor, " _tokens"]]:
            with torch.no_grad(), attention.recorded() as records:
                passes.logits(longest)
            found = []
            for text, length in enumerate(encoding.lengths):
                positions = attention.positions(encoding.select([text]))
                layers = [block.probabilities[:, :, :length, :length] for block in records.blocks]
                scores = self.read(layers, positions.present, _shares(positions, self.queries))
                found.append(positions.to_tokens(scores)[0])
            return found

        ((_, scores),) = passes.in_batches(longest, run)
        return scores

    def _scores(
        self, problem: Problem, part: Encoding, embeds: Embeddings | None = None
    ) -> Float[Tensor, "batch tokens"]:
        attention = problem.model.ask(AttentionLayers)
        positions = attention.positions(part)
        with attention.recorded() as records:
            problem.model.ask(Passes).logits(part, embeds)
        width = positions.present.shape[1]
        layers = [block.placed(block.probabilities, width) for block in records.blocks]
        return positions.to_tokens(self.read(layers, positions.present, _shares(positions, self.queries)))


def _shares(positions: Positions, queries: Queries) -> Rows:
    """How much each row of the attention counts, summing to 1."""
    if queries == "prediction":
        return positions.rows.cpu().double()
    present = positions.present.double()
    return present / present.sum(1, keepdim=True)


def without_padding(attention: Float[Tensor, "batch query key"], present: Present) -> Float[Tensor, "batch query key"]:
    """Zero where padding attends or is attended to, because these entries are undefined."""
    mask = present.to(attention.device)
    return attention.masked_fill(~(mask[:, :, None] & mask[:, None, :]), 0)
