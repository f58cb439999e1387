"""DecompX: token vectors propagated through the whole model, up to the logits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.decomposition import Anatomy
from raison.core.capability import Capability
from raison.core.internals.anatomy import HeadWeights, Trace
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.note_names import DECOMPOSED, DECOMPOSITION_GAP
from raison.core.problem import Problem
from raison.integration.distinct_texts import in_distinct_batches
from raison.numerics.attention.decomposition import Choices, Gate, head_vectors, through_layer
from raison.progress import steps_of

_TOGETHER = 1 << 26
"""Numbers in the vectors of texts that go through a layer together."""


@dataclass(frozen=True)
class Decompx(Method):
    """Decomposes the logit into one term per token, by propagating each token's part of every hidden state.

    x_i = sum_k x_i<-k, starting with x_i<-k = [i = k] x_i. Each layer keeps this sum exact (Modarressi et al. 2023,
    section 3 and appendix A):

    - Attention: sum_h sum_j A^h_ij W_O^h W_V^h x_j<-k + x_i<-k, with A constant.
    - Norms: gamma (x_i<-k - mean x_i<-k) / sigma_i (no mean in an RMS norm), with sigma constant.
    - Activations f: x_i<-k f(x_i) / x_i per feature, the line through the origin.
    - A bias b is divided among the k in proportion to |<x_i<-k, b>|; in the first layer b_V stays with its token.
    - The model's final norm and head follow the same rules. Where the model pools a mean, the tokens' terms are
      averaged.

    Returns (batch, tokens), signed, in logits: the term of the target's class, minus that of the other class for a pair
    or a margin.

    1 forward pass, and the work of about one more forward pass for each token, special and prompt tokens included.
    Memory: per text two sets of tokens x tokens hidden states (three in pre-norm models) and a bounded remainder; heads
    and sources are mixed a few at a time if they would not fit.

    Guarantees that the terms of all tokens, special and prompt tokens included, sum to the logit. The note
    `decomposition_gap` holds the rounding error: small in single precision, larger in half. This sum is not the
    difference from the text without its units, and special tokens often hold the larger part: the note `unscored` has
    their sum and the prompt's. A probability has no such terms. For every other choice of `of`, the logit is
    decomposed, and the note `decomposed` says so.

    `gate` decides about products f(g) u (SwiGLU, gated GELU). "constant" treats f(g) as a constant factor of u's
    vectors, as attention is a constant factor of the values'. "half" gives half of the product to u's vectors and half,
    by f's line through the origin, to g's.

    Differences from the paper: pre-norm models, RMS norms, gates, decoders and mean pooling are supported, and
    DistilBERT, which the published code lacks; the slope f(x) / x has no offset in the divisor; if no token's vector
    has a product with a bias, those that have a vector share it equally; special tokens get no score.

    Reference: modarressi2023decompx.
    """

    gate: Gate = "constant"

    reference: ClassVar[str] = "modarressi2023decompx"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({Anatomy})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.SIGNED})
    passes: ClassVar[str] = "1 forward, and as much work as about t forward"

    def check(self, model: LanguageModel) -> None:
        """Raises UnsupportedError if the logits are not the end of a chain of layers, as for answer spans."""
        model.ask(Anatomy).head()

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        encoding, anatomy = problem.encoding, problem.model.ask(Anatomy)
        head = anatomy.head()
        target = replace(problem.target, of="logit")
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)

        def run(texts: list[int]) -> list[Tensor]:
            traces = anatomy.traces(encoding.select(texts))
            return [terms.cpu().double() for terms in self._terms(anatomy, head, traces)]

        for texts, places, terms_of in in_distinct_batches(problem, run):
            for text, place in zip(texts, places, strict=True):
                terms = terms_of[place]
                scores[text, : len(terms)] = target.row(text, len(terms)).scalar(terms)
        problem.count_forward()
        logits = target.scalar(problem.predictions())
        problem.note(DECOMPOSED, ["logit" if target.against is None else "difference of logits"] * len(encoding))
        problem.note("unscored", scores.masked_fill(encoding.scored, 0).sum(1).tolist())
        problem.note(DECOMPOSITION_GAP, (scores.sum(1) - logits).abs().tolist())
        return scores

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)

    def _terms(
        self, anatomy: Anatomy, head: HeadWeights, traces: Sequence[Trace]
    ) -> Iterator[Float[Tensor, "tokens classes"]]:
        """What each token contributes to the logits; texts that fit go through a layer together."""
        groups = list(_together(traces))
        with steps_of("layers", len(groups) * anatomy.layers) as advance:
            for some in groups:
                vectors: list[Tensor | None] = [None] * len(some)
                for layer in range(anatomy.layers):
                    weights = anatomy.weights(layer)
                    for text, trace in enumerate(some):
                        vectors[text] = through_layer(vectors[text], trace, layer, weights, Choices(self.gate))
                    advance(1)
                for states, trace in zip(vectors, some, strict=True):
                    if states is not None:
                        yield head_vectors(states, trace, head)


def _together(traces: Sequence[Trace]) -> Iterator[Sequence[Trace]]:
    """Texts one after another whose vectors fit together, one at least."""
    sizes = [len(trace.rows) * trace.states[0].numel() for trace in traces]
    start = 0
    for end in range(1, len(traces) + 1):
        if end == len(traces) or sum(sizes[start : end + 1]) > _TOGETHER:
            yield traces[start:end]
            start = end
