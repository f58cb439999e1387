"""AT2: the attention of an answer to its sources, with head weights learned from ablations."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.capabilities.answer_attention import AnswerAttention
from raison.core.capability import Capability
from raison.core.errors import LoadError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.models.derived.explainers import files_of
from raison.models.derived.trained_heads import KIND, find


@dataclass(frozen=True)
class At2(Method):
    """Attention of a statement to each source, with heads weighted to predict the effects of ablations.

    score_j = sum_l sum_h theta_lh 1/|S| sum_(i in S) A_lh(i, j) for a token j, with A_lh(i, j) the attention of head h
    of layer l to j in the row that predicts token i of the statement S, and theta the trained weights (Cohen-Wang et
    al. 2025, AT2, section 3). A source has the sum of its tokens. Returns (batch, tokens), signed, in shares of
    attention: the absolute values of theta sum to 1.

    When an output is explained token by token (raison.explain), S is one token. Earlier output tokens that are units
    are scored, too.

    theta is trained once for a model (`raison train at2`): it maximises, over many questions, the mean correlation of
    the statement's log-odds under random removals of sources with the scores of the kept sources minus those of the
    removed ones.

    `checkpoint` is the folder of the weights; None takes those next to the model's files (some demo models include
    them), or those that were trained for the model's name.

    1 forward pass over the prompt and its answer, for all statements of the answer. Memory: the attention of 16 rows at
    a time, never that of all tokens to all tokens.

    Guarantees nothing about single answers: theta is as good as its training, and a score is not a change of a
    probability. Works on the answers of causal language models.

    Differences from the paper: theta is trained on whole sources where the published code removes single tokens, with
    all statements in each step in place of 512 drawn ones.

    Reference: cohenwang2025learning.
    """

    checkpoint: Annotated[str | None, Setting(outside=True)] = None

    reference: ClassVar[str] = "cohenwang2025learning"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({AnswerAttention})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.SIGNED, Property.TRAINED})
    passes: ClassVar[str] = "1 forward"

    def files(self, model: LanguageModel) -> tuple[Path, ...]:
        return files_of(model.name, self.checkpoint, KIND)

    def check(self, model: LanguageModel) -> None:
        find(model, self.checkpoint)

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        weights = find(problem.model, self.checkpoint)
        scores = []
        for attention in problem.model.ask(AnswerAttention).answer_attention(problem.encoding):
            if attention.shape[:2] != weights.shape:
                name = problem.model.name
                raise LoadError(
                    f"the trained heads of {name} have weights for {_spelled(weights)}, and its attention has "
                    f"{_spelled(attention)}: train them again (raison train at2 --model {name})."
                )
            scores.append(torch.einsum("lh,lht->t", weights, attention))
        problem.count_forward()
        return pad_sequence(scores, batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)


def _spelled(part: Tensor) -> str:
    return f"{part.shape[0]} layers of {part.shape[1]} heads"
