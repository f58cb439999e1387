"""Texts to an Encoding, with the caller's tokenizer left alone."""

from collections.abc import Sequence
from threading import Lock

from transformers import BatchEncoding, PreTrainedTokenizerBase

from raison.core.errors import InputError, TextTooLongError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given, plain
from raison.core.inputs.unit import Granularity, blank, check_unit, segments
from raison.models.tokens.own_tokenizer import own_tokenizer
from raison.models.tokens.token_rows import TokenRow, numbered, padding_id, stack
from raison.text.surrogates import without_surrogates
from raison.text.units import find_units

_CUTTING = Lock()


class TextEncoder:
    """Tokenizes texts and finds their units, with a copy of the tokenizer that has no truncation and padding.

    The name of a special token, written in a text, is plain text: "</s>" in a review neither ends it nor counts as the
    end-of-text token that some models read.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_tokens: int | None,
        truncation: str = "longest_first",
        kept: int | None = None,
    ) -> None:
        """`truncation` says which of two strings is cut: "longest_first" or "only_second", as in transformers.

        `kept` is a special token that a text may have: its name, written there, is that token.
        """
        self._given, self._kept = tokenizer, kept
        self._tokenizer = self._copy(())
        self.max_tokens = max_tokens
        self._truncation = truncation
        self.pad_id = padding_id(tokenizer)
        self._unknown = tokenizer.unk_token_id
        self._special = frozenset(tokenizer.all_special_ids) - {self._unknown, kept}

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode."""
        check_unit(unit)
        rows = []
        for where, text in numbered(texts):
            self._check_text(text, where)
            rows.append(self._encode_one(text, where, unit, truncate))
        return stack(rows, unit, self.pad_id)

    def _check_text(self, given: Given, where: str) -> None:
        text = plain(given)
        parts = segments(text) if isinstance(text, str | tuple) else ()
        if not parts or len(parts) > 2 or not all(isinstance(part, str) for part in parts):
            raise InputError(f"{where} is {text!r:.80}: a text is a string, or a pair of two strings.")
        if (reason := blank(where, text)) is not None:
            raise InputError(reason)

    def _encode_one(self, given: Given, where: str, unit: Granularity, truncate: bool) -> TokenRow:
        text = plain(given)
        parts = segments(text)
        encoded = self._tokens(self._tokenizer, parts, cut=False)
        length, removed = len(encoded["input_ids"]), 0
        if self.max_tokens is not None and length > self.max_tokens:
            if not truncate:
                raise TextTooLongError(
                    f"{where} has {length} tokens and the model reads at most {self.max_tokens}: "
                    f"shorten it, or pass truncate=True (--truncate) to explain its {self._read_side}.",
                    truncatable=True,
                )
            # The first call writes its settings to the copy, which no other thread may read meanwhile.
            with _CUTTING:
                cutting = self._copy((self._truncation, self.max_tokens))
                encoded = self._tokens(cutting, parts, cut=True)
            removed = length - len(encoded["input_ids"])
        owners = [-1 if part is None else part for part in encoded.sequence_ids(0)]
        units, unit_ids = find_units(given, encoded["offset_mapping"], owners, unit, cut=removed > 0)
        if not units:
            raise InputError(f"{where} has no token to explain: {text!r:.60}.")
        types = encoded.get("token_type_ids", [0] * len(owners))
        ids = self._plain(encoded["input_ids"], owners)
        return TokenRow(text, ids, types, encoded["offset_mapping"], units, unit_ids, removed)

    @property
    def _read_side(self) -> str:
        """What is left of a text that is too long."""
        return "end" if self._given.truncation_side == "left" else "beginning"

    def _tokens(self, tokenizer: PreTrainedTokenizerBase, parts: Sequence[str], *, cut: bool) -> BatchEncoding:
        return tokenizer(
            *map(without_surrogates, parts),
            return_offsets_mapping=True,
            verbose=False,
            padding=False,
            truncation=self._truncation if cut else False,
            max_length=self.max_tokens if cut else None,
            split_special_tokens=self._kept is None,
        )

    def _copy(self, use: tuple[object, ...]) -> PreTrainedTokenizerBase:
        """A copy of the tokenizer for calls with the same truncation and the same reading of special tokens' names."""
        if self._kept is not None:
            return own_tokenizer(self._given, ("kept", *use))
        return _split(own_tokenizer(self._given, ("texts", *use)))

    def _plain(self, ids: Sequence[int], owners: Sequence[int]) -> Sequence[int]:
        """Without special tokens inside a text: some vocabularies also have them among their pieces (T5)."""
        if self._unknown is None:
            return ids
        return [
            self._unknown if owner >= 0 and token in self._special else token
            for token, owner in zip(ids, owners, strict=True)
        ]


def _split(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """The copy with the settings of every call made in advance: a call that changes settings would disturb others."""
    if not tokenizer.backend_tokenizer.encode_special_tokens:
        tokenizer.backend_tokenizer.encode_special_tokens = True
    return tokenizer
