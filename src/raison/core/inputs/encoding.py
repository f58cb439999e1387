"""A batch of texts as tensors, tokenized once."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.inputs.parts import Given, again
from raison.core.inputs.unit import Granularity, Text, Unit
from raison.core.inputs.unknown_tokens import Unknown

KINDS = 16
"""More than any tokenizer has token types. Where a text is read in several passes, the types of read number n are
higher by n * KINDS: so every token stays with its read, whatever is deleted."""


@dataclass(frozen=True, slots=True)
class PlaceReading:
    """How predictions are read at the places of an encoding's spans.

    `weights` of a text sum to 1; places beyond its own have none. `choices` are the model's outputs that stand for each
    class at each place.
    """

    weights: Float[Tensor, "batch places"]
    choices: Int[Tensor, "batch places classes"]

    def select(self, rows: Sequence[int] | Tensor) -> "PlaceReading":
        """The reading of some texts, repeated as often as they are named."""
        return PlaceReading(self.weights[rows], self.choices[rows])


@dataclass(frozen=True, slots=True)
class Encoding:
    """A batch of texts as tensors, padded on the right, on the CPU.

    `unit_ids` maps each token to its unit in `units`; -1 marks what is never scored and never removed (special tokens,
    a prompt, padding, what lies outside the parts that the caller named). `truncated` holds, per text, the number of
    tokens that were cut off. Where the model answers with a part of the text, `spans` are the first and the last token
    of the answer that is explained, and `answerable` are the tokens where answers may be, if not all of these have
    units. Where it predicts at places of the text, `spans` are the tokens where the explained prediction is read
    (`reading`).

    Three facts follow from these and are computed once, because many callers read them text by text: `lengths`, the
    number of tokens of each text, special tokens included, padding not; `unit_counts`, the number of its units; and
    `scored`, which tokens belong to a unit.
    """

    texts: tuple[Text, ...]
    unit: Granularity
    units: tuple[tuple[Unit, ...], ...]
    input_ids: Int[Tensor, "batch tokens"]
    attention_mask: Bool[Tensor, "batch tokens"]
    type_ids: Int[Tensor, "batch tokens"]
    offsets: Int[Tensor, "batch tokens 2"]
    unit_ids: Int[Tensor, "batch tokens"]
    truncated: tuple[int, ...]
    prefix_length: int = 0
    spans: Int[Tensor, "batch places"] | None = None
    answerable: Bool[Tensor, "batch tokens"] | None = None
    reading: PlaceReading | None = None
    lengths: tuple[int, ...] = field(init=False, repr=False, compare=False)
    unit_counts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    scored: Bool[Tensor, "batch tokens"] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(self.attention_mask.sum(1).tolist()))
        object.__setattr__(self, "unit_counts", tuple(len(units) for units in self.units))
        object.__setattr__(self, "scored", self.unit_ids >= 0)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def given(self) -> tuple[Given, ...]:
        """The texts in a form that gives the same units again."""
        return tuple(again(text, units, self.unit) for text, units in zip(self.texts, self.units, strict=True))

    @property
    def whole(self) -> list[Bool[Tensor, "_one _units"]]:
        """A keep of every unit, for each text: its logits are those of the whole text."""
        return [torch.ones(1, count, dtype=torch.bool) for count in self.unit_counts]

    @property
    def nested(self) -> bool:
        """Whether every text is a beginning of the longest one, token by token."""
        longest = self.input_ids[self.attention_mask.sum(1).argmax()]
        return bool(((self.input_ids == longest) | ~self.attention_mask).all())

    @property
    def context(self) -> Bool[Tensor, "batch tokens"]:
        """Which tokens belong to a unit of a pair's second text, or are `answerable`: where an answer may be found."""
        if self.answerable is not None:
            return self.answerable
        of_units = torch.zeros(len(self), max(self.unit_counts, default=0) + 1, dtype=torch.bool)
        for row, units in enumerate(self.units):
            of_units[row, : len(units)] = torch.tensor([unit.segment == 1 for unit in units], dtype=torch.bool)
        # The last column is for tokens of no unit (index -1).
        return of_units.gather(1, self.unit_ids % of_units.shape[1])

    def unknown(self, token: int | None) -> list[Unknown]:
        """For each text, the share of its units' tokens that are `token`, the unknown token."""
        if token is None:
            return [Unknown(0.0, ())] * len(self)
        hits = (self.input_ids == token) & self.scored
        shares = (hits.sum(1) / self.scored.sum(1).clamp_min(1)).double().tolist()
        owners = [sorted(set(ids[hit].tolist())) for ids, hit in zip(self.unit_ids, hits, strict=True)]
        return [Unknown(share, tuple(units)) for share, units in zip(shares, owners, strict=True)]

    def select(self, rows: Sequence[int]) -> "Encoding":
        """The same encoding for some of its texts, without the padding that they do not need."""
        index = torch.as_tensor(list(rows), dtype=torch.long)
        width = int(self.attention_mask[index].sum(1).max())
        return replace(
            self,
            texts=tuple(self.texts[i] for i in rows),
            units=tuple(self.units[i] for i in rows),
            truncated=tuple(self.truncated[i] for i in rows),
            input_ids=self.input_ids[index, :width],
            attention_mask=self.attention_mask[index, :width],
            type_ids=self.type_ids[index, :width],
            offsets=self.offsets[index, :width],
            unit_ids=self.unit_ids[index, :width],
            spans=None if self.spans is None else self.spans[index],
            answerable=None if self.answerable is None else self.answerable[index, :width],
            reading=None if self.reading is None else self.reading.select(index),
        )

    def sum_to_units(self, token_scores: Float[Tensor, "batch tokens"]) -> Float[Tensor, "batch units"]:
        """Sum the scores of each unit's tokens; rows of texts with fewer units end in zeros."""
        width = max(self.unit_counts)
        sums = torch.zeros(len(self), width + 1, dtype=token_scores.dtype)
        # Column `width` collects what belongs to no unit and is cut off.
        sums.scatter_add_(1, torch.where(self.scored, self.unit_ids, width), token_scores.cpu())
        return sums[:, :width]
