"""Tokens predicted for masked positions by a masked language model."""

from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerBase

from raison.core.errors import InputError, LoadError
from raison.core.inputs.encoding import Encoding
from raison.models.loading.pretrained import read_tokenizer, read_whole
from raison.models.passes.batching import TokenBudget, run_grouped

ROWS = 64
"""Number of masked texts per batch."""


class FillIn:
    """A masked language model that shares the explained model's vocabulary."""

    def __init__(self, name: str, tokenizer: PreTrainedTokenizerBase) -> None:
        """Raises LoadError if there is no such model, InputError if its vocabulary differs."""
        try:
            self._model, own_tokenizer = read_whole(AutoModelForMaskedLM, name).eval(), read_tokenizer(name)
        except LoadError as error:
            raise LoadError(f"cannot load the masked language model: {error}") from None
        if own_tokenizer.get_vocab() != tokenizer.get_vocab() or own_tokenizer.mask_token_id is None:
            raise InputError(
                f"the masked language model '{Path(name).name}' has another vocabulary than the explained model: "
                "its tokens could not replace any. Use one with the same tokenizer, or another masking."
            )
        self._mask = own_tokenizer.mask_token_id
        self._special = torch.tensor(own_tokenizer.all_special_ids)

    def fill(self, encoding: Encoding) -> Int[Tensor, "batch tokens"]:
        """For each token of a unit, the likeliest other token; the rest are unchanged. One pass per token."""
        filled = encoding.input_ids.clone()
        jobs = encoding.scored.nonzero()

        def run(some: list[int]) -> Tensor:
            rows, places = jobs[some].unbind(1)
            ids, mask = encoding.input_ids[rows], encoding.attention_mask[rows]
            present = ids.gather(1, places[:, None])
            with torch.no_grad():
                logits = self._model(input_ids=ids.scatter(1, places[:, None], self._mask), attention_mask=mask).logits[
                    torch.arange(len(rows)), places
                ]
            logits = logits.scatter(1, present, -torch.inf)
            logits[:, self._special] = -torch.inf
            return logits.argmax(-1)

        for some, drawn in run_grouped(TokenBudget(ROWS), [1] * len(jobs), run):
            filled[tuple(jobs[some].T)] = drawn
        return filled
