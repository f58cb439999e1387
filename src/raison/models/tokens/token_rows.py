"""What all encoders share: rows of tokens are combined into an Encoding."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerBase

from raison.core.errors import InputError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given
from raison.core.inputs.unit import Granularity, Text, Unit
from raison.text.segment import CharacterSpan

THE_TEXT = "the text"
"""The name of a single text in errors."""
_ROWS: ContextVar[tuple[Sequence[int], int] | None] = ContextVar("rows", default=None)
"""The numbers of a batch's texts among those of the caller, and the caller's number of texts."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One text of an Encoding: its tokens, their characters and units, and how many tokens were cut off."""

    text: Text
    ids: Sequence[int]
    types: Sequence[int]
    offsets: Sequence[CharacterSpan]
    units: tuple[Unit, ...]
    unit_ids: Sequence[int]
    removed: int = 0


def padding_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """Padding never reaches the model unmasked; any id of the vocabulary will do where no pad token exists."""
    return tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0


@contextmanager
def numbered_among(rows: Sequence[int], count: int) -> Iterator[None]:
    """Inside, errors give a batch's texts the numbers `rows` that they have among `count` texts of the caller."""
    token = _ROWS.set((rows, count))
    try:
        yield
    finally:
        _ROWS.reset(token)


def name_of(number: int, count: int) -> str:
    """The name of a text in errors: a batch's text `number` of `count`."""
    rows, whole = _ROWS.get() or (range(count), count)
    return THE_TEXT if whole == 1 else f"text {rows[number] + 1} of {whole}"


def numbered(texts: Sequence[Given]) -> Iterator[tuple[str, Given]]:
    """Each text with its name in errors. Raises InputError if there is no text."""
    if not texts:
        raise InputError("no text to explain: pass at least one.")
    for number, text in enumerate(texts):
        yield name_of(number, len(texts)), text


def stack(rows: Sequence[TokenRow], unit: Granularity, pad_id: int, prefix_length: int = 0) -> Encoding:
    """The rows as one batch, padded on the right."""

    def table(columns: Sequence[Sequence[int] | Sequence[CharacterSpan]], fill: int) -> Tensor:
        tensors = [torch.as_tensor(column, dtype=torch.long) for column in columns]
        return pad_sequence(tensors, batch_first=True, padding_value=fill)

    input_ids = table([row.ids for row in rows], pad_id)
    lengths = torch.as_tensor([len(row.ids) for row in rows])
    return Encoding(
        texts=tuple(row.text for row in rows),
        unit=unit,
        units=tuple(row.units for row in rows),
        input_ids=input_ids,
        attention_mask=torch.arange(input_ids.shape[1])[None, :] < lengths[:, None],
        type_ids=table([row.types for row in rows], 0),
        offsets=table([row.offsets for row in rows], 0),
        unit_ids=table([row.unit_ids for row in rows], -1),
        truncated=tuple(row.removed for row in rows),
        prefix_length=prefix_length,
    )
