"""The attention of an answer to the text before it."""

from abc import abstractmethod
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding


class AnswerAttention(Capability):
    """Says how much each attention head looked at each token while the model wrote a statement, or a token."""

    name: ClassVar[str] = "answer_attention"
    absence: ClassVar[str] = "does not generate answers whose attention to the prompt can be read"
    way_out: ClassVar[str] = "Use a generative causal language model, or a method such as occlusion."

    @abstractmethod
    def answer_attention(self, encoding: Encoding) -> list[Float[Tensor, "layers heads _tokens"]]:
        """For each text, the mean attention of the rows that predict the statement's tokens to each token.

        If the prediction is a text's next token, this is its last row. In double precision on the CPU; later tokens of
        the answer get none. Each different answer takes one pass, and memory for a few rows of each layer's attention.
        """
