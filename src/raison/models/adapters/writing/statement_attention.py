"""The attention with which a causal language model wrote the statements of its answers."""

from collections.abc import Mapping
from typing import final

from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.answer_attention import AnswerAttention
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.unit import Text
from raison.models.adapters.classifier import Classifier
from raison.models.anatomy.answer_rows import mean_rows
from raison.models.tokens.written_answer import WrittenAnswer


@final
class StatementAttention(AnswerAttention):
    """One pass over each answer after its prompt, for any number of its statements."""

    def __init__(self, reader: Classifier, answers: Mapping[Text, WrittenAnswer]) -> None:
        self._reader = reader
        self._answers = answers

    def answer_attention(self, encoding: Encoding) -> list[Float[Tensor, "layers heads _tokens"]]:
        assert encoding.spans is not None, "a statement is chosen before it is read"
        attention: dict[int, Tensor] = {}
        for text in dict.fromkeys(encoding.texts):
            answered = self._answers[text]
            ids = (*answered.source.prompt.ids, *answered.output.ids)
            rows = [row for row, row_text in enumerate(encoding.texts) if row_text == text]
            # A token is predicted from the row before its own.
            before = len(answered.source.prompt.ids) - 1
            spans = [range(before + first, before + last + 1) for first, last in encoding.spans[rows].tolist()]
            attention.update(zip(rows, mean_rows(self._reader.core, ids, spans), strict=True))
        return [attention[row] for row in range(len(encoding))]
