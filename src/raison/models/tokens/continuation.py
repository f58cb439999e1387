"""A prompt and an output as token ids with their characters, and as one row per output token for methods to explain."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedTokenizerBase

from raison.core.encoding import Encoding
from raison.core.errors import InputError
from raison.core.unit import Granularity, Text, Unit, check_unit
from raison.models.tokens.plain_names import plain_names
from raison.text.halves import without_halves
from raison.text.segment import Span
from raison.text.units import find_units

Message = dict[str, str]
"""A turn of a chat: "role" and "content"."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The input of a language model: the string, its tokens, and the spans of it that may be scored.

    The first `added` tokens are the tokenizer's own and have no characters in the string. `sealed` is the string of a
    chat as it is tokenized, see plain_names: a special token's name in a message is plain text.
    """

    text: str
    ids: tuple[int, ...]
    offsets: tuple[Span, ...]
    regions: tuple[Span, ...]
    added: int = 0
    sealed: str | None = None

    def units(self, unit: Granularity) -> tuple[tuple[Unit, ...], tuple[int, ...]]:
        """Units of the regions, each segmented by itself, and each token's unit, -1 outside of all regions."""
        units: list[Unit] = []
        owners = [-1] * len(self.ids)
        for first, last in self.regions:
            # A space that the tokenizer trims away has an empty span, and is a token of the text all the same.
            own = [
                number
                for number, (start, end) in enumerate(self.offsets)
                if number >= self.added and (max(start, first) < min(end, last) or first <= start == end <= last)
            ]
            offsets = [
                (max(self.offsets[number][0], first) - first, min(self.offsets[number][1], last) - first)
                for number in own
            ]
            found, numbers = find_units(self.text[first:last], offsets, [0] * len(own), unit)
            for token, number in zip(own, numbers, strict=True):
                owners[token] = len(units) + number
            units += [Unit(part.start + first, part.end + first, part.text) for part in found]
        return tuple(units), tuple(owners)


@dataclass(frozen=True, slots=True)
class Output:
    """What follows a prompt: the string, its tokens, and their characters in prompt + output."""

    text: str
    ids: tuple[int, ...]
    spans: tuple[Span, ...]

    def token_text(self, number: int, joined: str) -> str:
        """The characters of a token in prompt + output."""
        start, end = self.spans[number]
        return joined[start:end]


def plain_prompt(tokenizer: PreTrainedTokenizerBase, text: str) -> Prompt:
    """A prompt as it is, after the tokenizer's own begin-of-text token where it has one."""
    if not text.strip():
        raise InputError("the prompt is empty or blank: there is nothing to explain.")
    encoded = tokenizer(without_halves(text), return_offsets_mapping=True, verbose=False)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    # A tokenizer that ends texts by itself would tell the model that there is nothing to go on with.
    owners = encoded.sequence_ids(0)
    while owners and owners[-1] is None:
        owners, ids, offsets = owners[:-1], ids[:-1], offsets[:-1]
    added = next((number for number, owner in enumerate(owners) if owner is not None), len(owners))
    return Prompt(text, tuple(ids), tuple(map(tuple, offsets)), ((0, len(text)),), added)


def chat_prompt(tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message]) -> Prompt:
    """Messages in the tokenizer's own chat template, up to where the answer begins; only their contents are scored."""
    _check_messages(tokenizer, messages)

    def render(contents: Sequence[str]) -> str:
        turns = [{**message, "content": content} for message, content in zip(messages, contents, strict=True)]
        return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))

    contents = [message["content"] for message in messages]
    text = render(contents)
    marks = [f"raison{number}content" for number in range(len(messages))]
    regions, cursor, rest = [], 0, render(marks)
    for mark, content in zip(marks, contents, strict=True):
        before, found, rest = rest.partition(mark)
        # Most templates take the white space around a message away.
        own = content if text.startswith(before + content, cursor) else content.strip()
        if not found or not text.startswith(before + own, cursor):
            raise InputError(_REWRITTEN)
        start = cursor + len(before)
        cursor = start + len(own)
        regions.append((start, cursor))
    if text[cursor:] != rest:
        raise InputError(_REWRITTEN)
    sealed = _sealed_around(tokenizer, text, regions)
    ids, offsets = _sealed_tokens(tokenizer, sealed)
    return Prompt(text, ids, offsets, tuple(regions), sealed=sealed)


def _sealed_around(tokenizer: PreTrainedTokenizerBase, text: str, regions: Sequence[Span]) -> str:
    """A string in which special tokens are meant outside of some regions alone."""
    seal, parts, reached = plain_names(tokenizer).sealed, [], 0
    for start, end in regions:
        parts += [seal(text[reached:start]), text[start:end]]
        reached = end
    return "".join([*parts, seal(text[reached:])])


def _sealed_tokens(tokenizer: PreTrainedTokenizerBase, sealed: str) -> tuple[tuple[int, ...], tuple[Span, ...]]:
    names = plain_names(tokenizer)
    encoded = names.tokenizer(
        without_halves(sealed),
        return_offsets_mapping=True,
        add_special_tokens=False,
        verbose=False,
        padding=False,
        truncation=False,
        split_special_tokens=True,
    )
    return names.ids(encoded["input_ids"], encoded.sequence_ids(0)), tuple(map(tuple, encoded["offset_mapping"]))


def ids_with(tokenizer: PreTrainedTokenizerBase, prompt: Prompt, output: str) -> list[int]:
    """The tokens of a prompt and an output as one string, without those that the tokenizer adds by itself.

    In an output special tokens are meant.
    """
    if prompt.sealed is not None:
        return list(_sealed_tokens(tokenizer, prompt.sealed + plain_names(tokenizer).sealed(output))[0])
    encoded = tokenizer(without_halves(prompt.text + output), add_special_tokens=False, verbose=False)
    return list(encoded["input_ids"])


_REWRITTEN = (
    "the tokenizer's chat template changes the messages, so their words cannot be found in what the model reads: "
    "pass the rendered prompt as a string."
)


def _check_messages(tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message]) -> None:
    for message in messages:
        good = isinstance(message, dict) and all(isinstance(message.get(key), str) for key in ("role", "content"))
        if not good:
            raise InputError(f"{message!r:.80} is no chat message: give dicts with the strings 'role' and 'content'.")
    if not any(message["content"].strip() for message in messages):
        raise InputError("the chat is empty or blank: there is nothing to explain.")
    if tokenizer.chat_template is None:
        raise InputError("the tokenizer has no chat template: pass the prompt as a string.")


def spell(tokenizer: PreTrainedTokenizerBase, prompt: Prompt, ids: Sequence[int]) -> Output:
    """The output's text as it follows the prompt, and each token's characters.

    Tokens that make up one character together (bytes of it) all have that character.
    """

    def decode(tokens: Sequence[int]) -> str:
        return str(tokenizer.decode([*prompt.ids, *tokens], clean_up_tokenization_spaces=False))

    before, whole = decode(()), decode(ids)
    base = _common(before, whole)
    ends = [_common(decode(ids[: count + 1]), whole) - base for count in range(len(ids) - 1)]
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


def _common(first: str, second: str) -> int:
    """Length of the beginning that two strings share."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(first), len(second)))


@dataclass(frozen=True, slots=True, eq=False)
class ContinuationEncoder:
    """One row per output token: the prompt and the outputs before it, so that the next token is its prediction.

    Every row has the prompt's text and units, so that random draws, and therefore the masked versions of all rows, are
    the same: each is the beginning of the next. With `earlier`, output tokens before a row's own are also units and
    belong to its text.
    """

    prompt: Prompt
    output: Output
    earlier: bool = False
    pad_id: int = 0

    def encode(self, texts: Sequence[Text], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode; the texts are known already, one for each output token."""
        check_unit(unit)
        if list(texts) != list(self.texts):
            raise InputError("this model is prepared for one prompt and output: load it again to explain others.")
        units, unit_ids = self.prompt.units(unit)
        if not units:
            raise InputError("the prompt has no token that could be explained.")
        count, first = len(self.output.ids), len(self.prompt.ids)
        lengths = first + torch.arange(count)
        width = first + count - 1
        own = torch.arange(width) < lengths[:, None]
        ids = torch.tensor([*self.prompt.ids, *self.output.ids[:-1]])
        spans = torch.tensor([*self.prompt.offsets, *self.output.spans[:-1]]).reshape(width, 2)
        later = torch.arange(count - 1) + len(units) if self.earlier else torch.full((count - 1,), -1)
        owners = torch.cat([torch.tensor(unit_ids), later])
        return Encoding(
            texts=self.texts,
            unit=unit,
            units=tuple(self._units(units, row) for row in range(count)),
            input_ids=torch.where(own, ids, self.pad_id),
            attention_mask=own,
            type_ids=torch.zeros(count, width, dtype=torch.long),
            offsets=torch.where(own[..., None], spans, 0),
            unit_ids=torch.where(own, owners, -1),
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
