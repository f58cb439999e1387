"""Class logits from a model's outputs: from a classification head, or from an answer span."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import PreTrainedConfig
from transformers.modeling_outputs import QuestionAnsweringModelOutput, Seq2SeqQuestionAnsweringModelOutput
from transformers.utils.generic import ModelOutput

from raison.core.dims import Logits
from raison.core.errors import InputError, UnsupportedError
from raison.models.passes.token_batch import TokenBatch

Parts = Float[Tensor, "rows parts choices"]

NetworkOutput = ModelOutput | Mapping[str, Any] | tuple[Any, ...] | Tensor
"""The output of one pass: a record with `logits`, a tuple with them first, or only the logits."""

ACTIVATIONS: Mapping[str, type[nn.Module]] = {
    kind.__name__: kind for kind in (nn.Identity, nn.Tanh, nn.ReLU, nn.GELU, nn.Sigmoid, nn.SiLU)
}
"""Activations of a number or a vector, by their names in files."""

LONGEST_ANSWER = 30
"""The longest predicted answer in tokens, as usual for SQuAD."""


def class_logits(outputs: NetworkOutput) -> Tensor:
    """The logits in the output of a forward pass."""
    if isinstance(outputs, Tensor):
        return outputs
    logits: Tensor = outputs["logits"] if isinstance(outputs, Mapping) else outputs[0]
    return logits


@dataclass(frozen=True, slots=True, eq=False)
class Head(ABC):
    """The choices that make a prediction, and the classes that are explained."""

    classes: tuple[str, ...]
    multi_label: bool
    in_place: ClassVar[bool] = False
    """Whether its choices are positions of the text, or made at positions, so that tokens can be replaced but not
    deleted."""
    in_context: ClassVar[bool] = False
    """Whether its choices are positions of a pair's second text."""

    def reading(self, batch: TokenBatch) -> AbstractContextManager[None]:
        """A context around a pass over this batch, for a head that selects what is read."""
        return nullcontext()

    @abstractmethod
    def parts(self, outputs: NetworkOutput, batch: TokenBatch) -> Parts:
        """Logits of every choice from what the model returned."""

    @abstractmethod
    def logits(self, parts: Parts, batch: TokenBatch) -> Logits:
        """Class logits from the logits of the choices."""

    @abstractmethod
    def predicted(self, parts: Parts) -> Int[Tensor, "rows parts"]:
        """The predicted choices."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassHead(Head):
    """One choice among the classes. A single output that is not a label is a number, which is also its logit."""

    activation: str | None = None
    """The final activation of a number, by its name in torch.nn."""

    @classmethod
    def of(cls, config: PreTrainedConfig) -> "ClassHead":
        """The head of a sequence classifier.

        transformers trains one output as a number, by the mean squared error, unless `problem_type` is
        "multi_label_classification": then it is a label, with a sigmoid. It refuses one output for a single label.

        Raises UnsupportedError for several numbers, and for classes of the same name, which results could not
        distinguish.
        """
        labels: dict[int, str] = config.id2label  # type: ignore[assignment]
        names = tuple(str(labels[number]) for number in range(len(labels)))
        if config.problem_type == "regression" and len(names) > 1:
            raise UnsupportedError(
                "cannot explain several numbers at once",
                [f"the model is a regressor with {len(names)} outputs ({', '.join(names):.60})"],
                f"Load a function that returns one of them: raison.load(function, classes=['{names[0]}']).",
            )
        if len(set(names)) < len(names):
            raise UnsupportedError(
                "cannot tell the model's classes apart",
                [f"several have the same name ({', '.join(names):.60})"],
                "Give each class its own name in model.config.id2label.",
            )
        return cls(names, config.problem_type == "multi_label_classification")

    def parts(self, outputs: NetworkOutput, batch: TokenBatch) -> Parts:
        """Raises InputError if the model gives more or fewer outputs than it has classes: its head was replaced."""
        logits = class_logits(outputs)
        if (width := logits.shape[-1]) != len(self.classes):
            raise InputError(
                f"the model gives {width} output{'' if width == 1 else 's'}, but when it was loaded, it had names for "
                f"{len(self.classes)} ({', '.join(self.classes):.60}): set model.config.id2label to a name for each "
                "output, and load it again."
            )
        return logits[:, None]

    def logits(self, parts: Parts, batch: TokenBatch) -> Logits:
        if self.activation is None:
            return parts[:, 0]
        logits: Tensor = ACTIVATIONS[self.activation]()(parts[:, 0])
        return logits

    def predicted(self, parts: Parts) -> Int[Tensor, "rows parts"]:
        return parts.argmax(-1)


@dataclass(frozen=True, slots=True, eq=False)
class SpanHead(Head):
    """Two choices, the answer's first and last token; explained as "this answer" against all others.

    With start logits a, end logits b and an answer from token s to token e, the class "answer" has the logit a_s + b_e
    and "other answers" the log-sum-exp of a_i + b_j over all other pairs (i, j) of positions of the context, so that
    the softmax over the two gives exactly p_start(s) p_end(e). The pairs fall into those with i != s and any j, and
    those with i = s and j != e, each a product of sums, so that nothing cancels where the probability is close to 1.
    """

    in_place: ClassVar[bool] = True
    in_context: ClassVar[bool] = True

    def parts(self, outputs: NetworkOutput, batch: TokenBatch) -> Parts:
        if not isinstance(outputs, QuestionAnsweringModelOutput | Seq2SeqQuestionAnsweringModelOutput):
            raise UnsupportedError(
                "cannot read the answers of this model",
                [f"it returns a {type(outputs).__name__} instead of start and end logits"],
                "Use a model with a linear question answering head (BERT, RoBERTa, DistilBERT, ELECTRA, ...).",
            )
        assert outputs.start_logits is not None, "an answer without its logits"
        assert outputs.end_logits is not None, "an answer without its logits"
        logits = torch.stack([outputs.start_logits, outputs.end_logits], 1)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return logits.masked_fill(~_allowed(batch).to(logits.device)[:, None], -torch.inf)

    def logits(self, parts: Parts, batch: TokenBatch) -> Logits:
        assert batch.spans is not None, "an encoding without an answer to explain"
        spans = batch.spans.to(parts.device)
        return answer_logits(parts, spans)

    def predicted(self, parts: Parts) -> Int[Tensor, "rows parts"]:
        """The pair with the highest sum among those that do not end before they start and are not too long."""
        start, end = parts.unbind(1)
        longest = min(LONGEST_ANSWER, end.shape[1])
        # Column k holds the end logit of the token k places after each start.
        ends = torch.nn.functional.pad(end, (0, longest - 1), value=-torch.inf).unfold(1, longest, 1)
        best = (start[:, :, None] + ends).flatten(1).argmax(1)
        first = best // longest
        return torch.stack([first, first + best % longest], 1)


def answer_logits(parts: Float[Tensor, "rows 2 choices"], spans: Int[Tensor, "rows 2"]) -> Float[Tensor, "rows 2"]:
    """Logits of the answer from token s to token e, and of all other answers together; see SpanHead."""
    answer = parts.gather(2, spans[:, :, None])[:, :, 0]
    others = parts.scatter(2, spans[:, :, None], -torch.inf).logsumexp(2)
    any_end = parts[:, 1].logsumexp(1)
    rest = torch.stack([others[:, 0] + any_end, answer[:, 0] + others[:, 1]], 1).logsumexp(1)
    return torch.stack([answer.sum(1), rest], 1)


def _allowed(batch: TokenBatch) -> Bool[Tensor, "rows tokens"]:
    assert batch.context is not None, "a batch without its texts' contexts"
    return batch.context
