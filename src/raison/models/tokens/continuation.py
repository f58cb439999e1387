"""A prompt and an output as token ids with their characters, and as one row per output token for methods to explain."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from transformers import BatchEncoding, PreTrainedTokenizerBase

from raison.core.errors import InputError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given, PartedText, plain
from raison.core.inputs.unit import PART, Granularity, Unit, check_unit
from raison.models.tokens.plain_names import plain_names
from raison.text.beginning import common_length
from raison.text.named import joined_parts
from raison.text.segment import CharacterSpan
from raison.text.surrogates import without_surrogates
from raison.text.units import find_units


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """The input of a language model: the string, its tokens, and the spans of it that may be scored.

    The first `added` tokens are the tokenizer's own and have no characters in the string. `parts` are those that the
    caller names: spans of the prompt, or the messages and documents of a chat. `sealed` is the string of a chat, or of
    a prompt with untrusted characters, as it is tokenized, see plain_names: a special token's name in them is plain
    text.

    An encoder-decoder reads the first `border` tokens with its encoder. Its decoder begins with the others, which are
    given and not written. The last `closing` tokens, including these, have no characters.
    """

    text: str
    ids: tuple[int, ...]
    offsets: tuple[CharacterSpan, ...]
    regions: tuple[CharacterSpan, ...]
    added: int = 0
    parts: tuple[Unit, ...] = ()
    sealed: str | None = None
    border: int | None = None
    closing: int = 0

    @property
    def continued(self) -> tuple[int, ...]:
        """The tokens whose text the output continues: none where an encoder reads the prompt."""
        return self.ids if self.border is None else ()

    @property
    def text_end(self) -> int:
        """The token after the last one with characters."""
        return len(self.ids) - self.closing

    def units(self, unit: Granularity) -> tuple[tuple[Unit, ...], tuple[int, ...]]:
        """Units of the regions, each segmented by itself, and each token's unit, -1 outside of all regions.

        The unit "part" stands for the prompt's parts: of a chat, what its template writes belongs to none. Raises
        InputError if it has none.
        """
        if unit == PART:
            given = PartedText(self.text, self.parts) if self.parts else self.text
            inside = {number for region in self.regions for number in self._tokens_of(*region)}
            return find_units(given, self.offsets, [0 if n in inside else -1 for n in range(len(self.ids))], unit)
        units: list[Unit] = []
        owners = [-1] * len(self.ids)
        for first, last in self.regions:
            region_tokens = self._tokens_of(first, last)
            offsets = [
                (max(self.offsets[number][0], first) - first, min(self.offsets[number][1], last) - first)
                for number in region_tokens
            ]
            parts, numbers = find_units(self.text[first:last], offsets, [0] * len(region_tokens), unit)
            for token, number in zip(region_tokens, numbers, strict=True):
                owners[token] = len(units) + number
            units += [replace(part, start=part.start + first, end=part.end + first) for part in parts]
        return tuple(units), tuple(owners)

    def _tokens_of(self, first: int, last: int) -> list[int]:
        """The numbers of the tokens of a region. A space that the tokenizer trims has an empty span, but is one."""
        return [
            number
            for number, (start, end) in enumerate(self.offsets[: self.text_end])
            if number >= self.added and (max(start, first) < min(end, last) or first <= start == end <= last)
        ]


@dataclass(frozen=True, slots=True)
class Output:
    """What follows a prompt: the string, its tokens, and their characters in prompt + output."""

    text: str
    ids: tuple[int, ...]
    spans: tuple[CharacterSpan, ...]

    def token_text(self, number: int, joined: str) -> str:
        """The characters of a token in prompt + output."""
        start, end = self.spans[number]
        return joined[start:end]


def plain_prompt(
    tokenizer: PreTrainedTokenizerBase, given: str | PartedText, untrusted: Sequence[CharacterSpan] = ()
) -> TokenizedPrompt:
    """A prompt as it is, after the tokenizer's begin-of-text token, if it has one.

    Special tokens' names in its `untrusted` characters are plain text.
    """
    whole = _read(tokenizer, given, untrusted)
    # An end-of-text token that the tokenizer adds would tell the model that there is nothing to continue.
    end = whole.text_end
    return replace(whole, ids=whole.ids[:end], offsets=whole.offsets[:end], closing=0)


def source_prompt(
    tokenizer: PreTrainedTokenizerBase,
    given: str | PartedText,
    start: tuple[int, ...],
    untrusted: Sequence[CharacterSpan] = (),
) -> TokenizedPrompt:
    """A text as an encoder reads it, and the tokens that its decoder begins with."""
    whole = _read(tokenizer, given, untrusted)
    return replace(
        whole,
        ids=whole.ids + start,
        offsets=whole.offsets + ((0, 0),) * len(start),
        border=len(whole.ids),
        closing=whole.closing + len(start),
    )


def _read(
    tokenizer: PreTrainedTokenizerBase, given: str | PartedText, untrusted: Sequence[CharacterSpan]
) -> TokenizedPrompt:
    """A text with all tokens that the tokenizer gives it."""
    text = plain(given)
    if not isinstance(text, str):
        raise InputError("a prompt is a single text, and this is a pair: join the two.")
    if not text.strip():
        raise InputError("the prompt is empty or blank: there is nothing to explain.")
    sealed = None
    if untrusted and plain_names(tokenizer).named_in(text[start:end] for start, end in untrusted):
        sealed = sealed_around(tokenizer, text, sorted(untrusted))
        encoded = _sealed(tokenizer, sealed, add_special_tokens=True)
        ids = plain_names(tokenizer).ids(encoded["input_ids"], encoded.sequence_ids(0))
    else:
        encoded = tokenizer(without_surrogates(text), return_offsets_mapping=True, verbose=False)
        ids = tuple(encoded["input_ids"])
    owned = [number for number, owner in enumerate(encoded.sequence_ids(0)) if owner is not None]
    added, end = (owned[0], owned[-1] + 1) if owned else (len(ids), len(ids))
    offsets = tuple(map(tuple, encoded["offset_mapping"]))
    inside = [0 if added <= number < end else -1 for number in range(len(ids))]
    parts = joined_parts(given, offsets, inside).parts if isinstance(given, PartedText) else ()
    return TokenizedPrompt(text, ids, offsets, ((0, len(text)),), added, parts, sealed=sealed, closing=len(ids) - end)


def sealed_around(tokenizer: PreTrainedTokenizerBase, text: str, regions: Sequence[CharacterSpan]) -> str:
    """A string in which special tokens' names count as such only outside of the given regions."""
    seal, parts, reached = plain_names(tokenizer).sealed, [], 0
    for start, end in regions:
        parts += [seal(text[reached:start]), text[start:end]]
        reached = end
    return "".join([*parts, seal(text[reached:])])


def sealed_tokens(tokenizer: PreTrainedTokenizerBase, sealed: str) -> tuple[tuple[int, ...], tuple[CharacterSpan, ...]]:
    """The tokens of a string whose special tokens are sealed, and their characters."""
    encoded = _sealed(tokenizer, sealed, add_special_tokens=False)
    ids = plain_names(tokenizer).ids(encoded["input_ids"], encoded.sequence_ids(0))
    return ids, tuple(map(tuple, encoded["offset_mapping"]))


def _sealed(tokenizer: PreTrainedTokenizerBase, sealed: str, add_special_tokens: bool) -> BatchEncoding:
    return plain_names(tokenizer).tokenizer(
        without_surrogates(sealed),
        return_offsets_mapping=True,
        add_special_tokens=add_special_tokens,
        verbose=False,
        padding=False,
        truncation=False,
        split_special_tokens=True,
    )


def ids_with(tokenizer: PreTrainedTokenizerBase, prompt: TokenizedPrompt, output: str) -> list[int]:
    """The tokens of a prompt and an output as one string, without those that the tokenizer adds by itself.

    A special token's name in the output stands for that token. An encoder-decoder's output does not follow the prompt,
    so only the output's tokens are returned.
    """
    if prompt.sealed is not None and prompt.border is None:
        return list(sealed_tokens(tokenizer, prompt.sealed + plain_names(tokenizer).sealed(output))[0])
    before = prompt.text if prompt.border is None else ""
    encoded = tokenizer(without_surrogates(before + output), add_special_tokens=False, verbose=False)
    return list(encoded["input_ids"])


def spell(tokenizer: PreTrainedTokenizerBase, prompt: TokenizedPrompt, ids: Sequence[int]) -> Output:
    """The output's text as it follows the prompt, and each token's characters.

    Tokens that make up one character together (bytes of it) all have that character.
    """

    def decode(tokens: Sequence[int]) -> str:
        return str(tokenizer.decode([*prompt.continued, *tokens], clean_up_tokenization_spaces=False))

    before, whole = decode(()), decode(ids)
    base = common_length(before, whole)
    ends = [common_length(decode(ids[: count + 1]), whole) - base for count in range(len(ids) - 1)]
    text = whole[base:]
    ends.append(len(text))
    shift, start = len(prompt.text), 0
    spans = []
    for end in ends:
        end = max(start, end)
        # A token that completes no character has its share in the next one.
        spans.append((shift + start, shift + max(end, min(start + 1, len(text)))))
        start = end
    return Output(text, tuple(ids), tuple(spans))


@dataclass(frozen=True, slots=True, eq=False)
class ContinuationEncoder:
    """One row per output token: the prompt and the outputs before it, so that the next token is its prediction.

    Every row has the prompt's text and units, so that random draws, and therefore the masked versions of all rows, are
    the same: each is the beginning of the next. With `earlier`, output tokens before a row's own are also units and
    belong to its text. `against` is the token that each output token is contrasted with, if it is.
    """

    prompt: TokenizedPrompt
    output: Output
    earlier: bool = False
    pad_id: int = 0
    against: tuple[int, ...] | None = None

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode; the texts are known already, one for each output token."""
        check_unit(unit)
        if list(texts) != list(self.texts):
            raise InputError("this model was prepared for one prompt and output: load it again to explain others.")
        units, unit_ids = self.prompt.units(unit)
        if not units:
            raise InputError("the prompt has no token to explain.")
        count, first = len(self.output.ids), len(self.prompt.ids)
        lengths = first + torch.arange(count)
        width = first + count - 1
        mask = torch.arange(width) < lengths[:, None]
        ids = torch.tensor([*self.prompt.ids, *self.output.ids[:-1]])
        spans = torch.tensor([*self.prompt.offsets, *self.output.spans[:-1]]).reshape(width, 2)
        later = torch.arange(count - 1) + len(units) if self.earlier else torch.full((count - 1,), -1)
        owners = torch.cat([torch.tensor(unit_ids), later])
        return Encoding(
            texts=self.texts,
            unit=unit,
            units=tuple(self._units(units, row) for row in range(count)),
            input_ids=torch.where(mask, ids, self.pad_id),
            attention_mask=mask,
            type_ids=torch.zeros(count, width, dtype=torch.long),
            offsets=torch.where(mask[..., None], spans, 0),
            unit_ids=torch.where(mask, owners, -1),
            truncated=(0,) * count,
            prefix_length=next(number for number, owner in enumerate(unit_ids) if owner >= 0),
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """The rows' texts: the prompt, and with `earlier` what was written before."""
        joined = self.prompt.text + self.output.text
        if not self.earlier:
            return (self.prompt.text,) * len(self.output.ids)
        return tuple(joined[:start] for start, _ in self.output.spans)

    def _units(self, units: tuple[Unit, ...], row: int) -> tuple[Unit, ...]:
        if not self.earlier:
            return units
        joined = self.prompt.text + self.output.text
        return units + tuple(Unit(start, end, joined[start:end]) for start, end in self.output.spans[:row])
