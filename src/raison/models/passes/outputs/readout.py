"""Class logits from the hidden states of a causal model."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from raison.models.passes.outputs.output_layer import FoundHead, token_logits

ROWS = 256
"""Maximum number of rows with logits over the whole vocabulary in memory."""
LOGITS = 1 << 21
"""Number of logits that are summed at a time, so that the working memory fits into the processor's cache."""

States = Float[Tensor, "rows _reads hidden"]


@dataclass(frozen=True, slots=True, eq=False)
class Readout(ABC):
    """`branches` are token sequences, each appended to a text; `()` appends nothing.

    A branch of k tokens is read at k + 1 positions: at the text's last token and at each of its own.
    """

    branches: tuple[tuple[int, ...], ...]

    @abstractmethod
    def logits(self, states: Sequence[States]) -> Float[Tensor, "rows classes"]:
        """Class logits from the hidden states read on each branch, differentiable."""


@dataclass(frozen=True, slots=True, eq=False)
class HeadReadout(Readout):
    """The linear head of a sequence classifier, on the last token's state."""

    head: FoundHead

    def logits(self, states: Sequence[States]) -> Float[Tensor, "rows classes"]:
        logits: Tensor = self.head.module(states[0][:, -1])
        return logits


@dataclass(frozen=True, slots=True, eq=False)
class WordReadout(Readout):
    """Label words of a language model, computed from their rows of its output matrix.

    Where every label is one token, a class's logit is that token's (the normaliser over the vocabulary cancels in the
    softmax over classes). Otherwise it is the label's log-probability, summed over its tokens. `prior`, if given, is
    subtracted: the log-probabilities of contextual calibration (Zhao et al. 2021).
    """

    head: FoundHead
    label_ids: tuple[tuple[int, ...], ...]
    prior: Float[Tensor, " classes"] | None = None

    @classmethod
    def of(cls, head: FoundHead, label_ids: tuple[tuple[int, ...], ...]) -> "WordReadout":
        """Labels that share all tokens but the last share a branch.

        The text itself always comes last, so that a recording of the last pass is of the text.
        """
        longer = dict.fromkeys(ids[:-1] for ids in label_ids if len(ids) > 1)
        return cls((*longer, ()), head, label_ids)

    def calibrated(self, prior: Float[Tensor, " classes"]) -> "WordReadout":
        """The same labels with a prior to subtract."""
        return replace(self, prior=prior)

    def logits(self, states: Sequence[States]) -> Float[Tensor, "rows classes"]:
        if all(len(ids) == 1 for ids in self.label_ids):
            scores = token_logits(self.head.module, states[-1][:, -1], [ids[0] for ids in self.label_ids])
        else:
            head = self.head.module
            whole = [head(read).float().log_softmax(-1) for read in states]
            scores = torch.stack([self._score(whole, ids) for ids in self.label_ids], -1)
        return scores if self.prior is None else scores - self.prior.to(scores)

    def _score(self, whole: list[Tensor], ids: tuple[int, ...]) -> Float[Tensor, " rows"]:
        read = whole[self.branches.index(ids[:-1])]
        steps = torch.arange(len(ids), device=read.device)
        return read[:, steps, torch.as_tensor(ids, device=read.device)].sum(-1)


@dataclass(frozen=True, slots=True, eq=False)
class TokenReadout(Readout):
    """Chosen tokens of the vocabulary as classes, and all other tokens together as the last class.

    The last class's logit is the log-sum-exp of the other tokens' logits, so that the softmax over these classes gives
    the tokens' probabilities over the whole vocabulary, and the tokens' logits are the model's own.
    """

    head: FoundHead
    tokens: tuple[int, ...]

    def logits(self, states: Sequence[States]) -> Float[Tensor, "rows classes"]:
        # A few rows at a time: logits over a vocabulary are wide, the results are not.
        return torch.cat([self._portion(portion) for portion in states[0][:, -1].split(ROWS)])

    def _portion(self, states: Float[Tensor, "rows hidden"]) -> Float[Tensor, "rows classes"]:
        whole = self.head.module(states).float()
        chosen = torch.as_tensor(self.tokens, device=whole.device)
        parts = whole.split(max(1, LOGITS // whole.shape[-1]))
        others = [part.index_fill(-1, chosen, -torch.inf).logsumexp(-1, keepdim=True) for part in parts]
        return torch.cat([whole[:, chosen], torch.cat(others)], -1)
