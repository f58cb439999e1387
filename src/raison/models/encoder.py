"""Texts to an Encoding, with the caller's tokenizer left alone."""

import copy
from collections.abc import Sequence

import torch
from transformers import PreTrainedTokenizerBase

from raison.core.encoding import Encoding
from raison.core.errors import InputError, LoadError, TextTooLongError
from raison.core.unit import Granularity, Text, check_unit, segments
from raison.text.units import find_units


class TextEncoder:
    """Tokenizes texts and finds their units. Works on a copy of the tokenizer, without its truncation and padding."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_tokens: int | None) -> None:
        if not tokenizer.is_fast:
            raise LoadError(
                f"the tokenizer {type(tokenizer).__name__} gives no character offsets: "
                "load its fast version (AutoTokenizer.from_pretrained(..., use_fast=True))."
            )
        self._tokenizer = copy.deepcopy(tokenizer)
        self.max_tokens = max_tokens
        # Padding never reaches the model unmasked; any id of the vocabulary will do where no pad token exists.
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0

    def encode(self, texts: Sequence[Text], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode."""
        check_unit(unit)
        if not texts:
            raise InputError("no text to explain: give at least one.")
        rows = []
        for number, text in enumerate(texts):
            where = "the text" if len(texts) == 1 else f"text {number + 1} of {len(texts)}"
            self._check_text(text, where)
            rows.append(self._encode_one(text, where, unit, truncate))
        return self._stack(tuple(texts), unit, rows)

    def _check_text(self, text: Text, where: str) -> None:
        parts = segments(text) if isinstance(text, str | tuple) else ()
        if not parts or len(parts) > 2 or not all(isinstance(part, str) for part in parts):
            raise InputError(f"{where} is {text!r:.80}: a text is a string, or a pair of two strings.")
        if any(not part.strip() for part in parts):
            raise InputError(f"{where} is empty or blank: there is nothing to explain.")

    def _encode_one(self, text: Text, where: str, unit: Granularity, truncate: bool) -> dict[str, object]:
        parts = segments(text)
        encoded = self._tokenizer(*parts, return_offsets_mapping=True, verbose=False, padding=False, truncation=False)
        length, removed = len(encoded["input_ids"]), 0
        if self.max_tokens is not None and length > self.max_tokens:
            if not truncate:
                raise TextTooLongError(
                    f"{where} has {length} tokens and the model reads at most {self.max_tokens}: "
                    "shorten it, or pass truncate=True (--truncate) to explain its beginning."
                )
            encoded = self._tokenizer(
                *parts,
                return_offsets_mapping=True,
                verbose=False,
                padding=False,
                truncation="longest_first",
                max_length=self.max_tokens,
            )
            removed = length - len(encoded["input_ids"])
        owners = [-1 if part is None else part for part in encoded.sequence_ids(0)]
        units, unit_ids = find_units(text, encoded["offset_mapping"], owners, unit)
        if not units:
            raise InputError(f"{where} has no token that could be explained: {text!r:.60}.")
        return {
            "ids": encoded["input_ids"],
            "types": encoded.get("token_type_ids", [0] * len(owners)),
            "offsets": encoded["offset_mapping"],
            "units": units,
            "unit_ids": unit_ids,
            "removed": removed,
        }

    def _stack(self, texts: tuple[Text, ...], unit: Granularity, rows: list[dict]) -> Encoding:
        width = max(len(row["ids"]) for row in rows)

        def table(name: str, fill: int) -> torch.Tensor:
            filled = torch.full((len(rows), width), fill, dtype=torch.long)
            for number, row in enumerate(rows):
                filled[number, : len(row[name])] = torch.as_tensor(row[name])
            return filled

        offsets = torch.zeros(len(rows), width, 2, dtype=torch.long)
        for number, row in enumerate(rows):
            offsets[number, : len(row["offsets"])] = torch.as_tensor(row["offsets"])
        lengths = torch.as_tensor([len(row["ids"]) for row in rows])
        return Encoding(
            texts=texts,
            unit=unit,
            units=tuple(row["units"] for row in rows),
            input_ids=table("ids", self.pad_id),
            attention_mask=torch.arange(width)[None, :] < lengths[:, None],
            type_ids=table("types", 0),
            offsets=offsets,
            unit_ids=table("unit_ids", -1),
            truncated=tuple(row["removed"] for row in rows),
        )
