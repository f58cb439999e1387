"""Texts in a prompt to an Encoding, and the tokens of the label words that follow it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from raison.core.errors import InputError, TextTooLongError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given, plain
from raison.core.inputs.unit import Granularity, Unit, check_unit
from raison.core.targets.choices import Explained
from raison.models.tokens.label_words import Speller, find_label_ids
from raison.models.tokens.plain_names import plain_names
from raison.models.tokens.token_rows import TokenRow, numbered, padding_id, stack
from raison.text.prompts import Prompt, Template
from raison.text.segment import CharacterSpan
from raison.text.surrogates import without_surrogates
from raison.text.units import find_units


@dataclass(frozen=True, slots=True)
class _TokenizedText:
    """A string's tokens: ids, types and characters; `covered` are the characters with white space put back."""

    ids: tuple[int, ...]
    types: tuple[int, ...]
    offsets: tuple[CharacterSpan, ...]
    covered: tuple[CharacterSpan, ...]


class PromptEncoder:
    """Puts texts into a prompt, tokenizes the whole once, and finds the units. Works on a copy of the tokenizer.

    The name of a special token is that token in the prompt, whose chat template may contain some, and plain text in a
    text.

    `explained` "input" gives units and offsets of the text only. "prompt" explains the whole string: it is the
    encoding's text, and its units are the prompt's sentences and shots, followed by the input's units. Everything else
    that the model reads (cue, separators, markers, special tokens) has the unit -1.

    `label_ids` are the tokens of each class's label word after the prompt; with the prompt's scoring "first", the first
    of them. `max_tokens` is the room for prompt and text: the model's limit minus the tokens of the label words.
    Construction costs a few runs of the tokenizer. It raises LoadError for label words that cannot be distinguished,
    and InputError for a prompt that the model or the tokenizer does not support.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, prompt: Prompt, max_tokens: int | None, explained: Explained
    ) -> None:
        self._names = plain_names(tokenizer)
        self._tokenizer = self._names.tokenizer
        self.prompt = prompt
        self.explained = explained
        self.pad_id = padding_id(tokenizer)
        self.rendered = prompt.render(_template_of(self._tokenizer))
        # The same, character for character, as it is tokenized.
        seal = self._names.sealed
        self._framed = replace(self.rendered, before=seal(self.rendered.before), after=seal(self.rendered.after))
        speller = Speller(lambda string: self._tokenize(string).ids, self._shown, tokenizer.unk_token_id)
        self.label_ids = find_label_ids(prompt, self._framed, speller)
        # The last token of a label word is only predicted, never read.
        self._reserve = max(len(ids) for ids in self.label_ids) - 1
        self.max_tokens = None if max_tokens is None else max_tokens - self._reserve
        self._check_room()

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode."""
        check_unit(unit)
        rows = []
        for where, text in numbered(texts):
            self._check_text(text, where)
            rows.append(self._encode_one(text, where, unit, truncate))
        prefix = 0 if self.explained == "prompt" else _shared_prefix(rows)
        return stack(rows, unit, self.pad_id, prefix)

    def _check_text(self, given: Given, where: str) -> None:
        text = plain(given)
        if isinstance(text, tuple):
            raise InputError(
                f"{where} is a pair, and the prompt '{self.prompt.name}' has one slot: join the two into one text."
            )
        if not isinstance(text, str):
            raise InputError(f"{where} is {text!r:.80}: a text for a prompt is a string.")
        if not text.strip():
            raise InputError(f"{where} is empty or blank: there is nothing to explain.")

    def _encode_one(self, given: Given, where: str, unit: Granularity, truncate: bool) -> TokenRow:
        text = str(plain(given))
        tokens = self._tokenize(self._framed.around(text))
        shown, removed = text, 0
        if self.max_tokens is not None and len(tokens.ids) > self.max_tokens:
            # Before the refusal: only what has a beginning that fits can be truncated.
            shown = self._cut(text, where, tokens)
            if not truncate:
                raise TextTooLongError(
                    f"{where} is too long: {self._sizes(text, tokens)}. "
                    "Shorten it, pass truncate=True (--truncate) to explain its beginning, or take fewer shots.",
                    truncatable=True,
                )
            length, tokens = len(tokens.ids), self._tokenize(self._framed.around(shown))
            removed = length - len(tokens.ids)
        start = len(self.rendered.before)
        inside = _tokens_in(tokens, (start, start + len(shown)))
        owners = [0 if mine else -1 for mine in inside]
        offsets = [
            _clip(span, start, start + len(shown)) if mine else (0, 0)
            for span, mine in zip(tokens.offsets, inside, strict=True)
        ]
        # The whole text, so that the last unit of a cut one ends where its tokens do.
        units, unit_ids = find_units(given, offsets, owners, unit, cut=removed > 0)
        if not units:
            raise InputError(f"{where} has no token to explain: {text!r:.60}.")
        row = TokenRow(text, tokens.ids, tokens.types, offsets, units, unit_ids, removed)
        return row if self.explained == "input" else self._with_prompt(row, tokens, shown)

    def _with_prompt(self, row: TokenRow, tokens: _TokenizedText, shown: str) -> TokenRow:
        """The same row with the whole string as its text and the prompt's parts as its first units."""
        string, start = self.rendered.around(shown), len(self.rendered.before)
        parts: list[Unit] = []
        owners: dict[int, int] = {}
        for first, last in self.rendered.parts:
            held = _tokens_in(tokens, (first, last))
            # A token of two parts stays with the first; a part without a token of its own is no unit.
            mine = [n for n, has in enumerate(held) if has and row.unit_ids[n] == -1 and n not in owners]
            if mine:
                owners |= dict.fromkeys(mine, len(parts))
                parts.append(Unit(first, last, string[first:last]))
        inputs = [replace(unit, start=unit.start + start, end=unit.end + start) for unit in row.units]
        numbers = tuple(
            owners.get(n, -1) if number == -1 else number + len(parts) for n, number in enumerate(row.unit_ids)
        )
        return replace(row, text=string, offsets=tokens.offsets, units=(*parts, *inputs), unit_ids=numbers)

    def _cut(self, text: str, where: str, tokens: _TokenizedText) -> str:
        """The longest beginning of the text that fits, in whole tokens."""
        assert self.max_tokens is not None, "a text was truncated for a model without a length limit"
        start = len(self.rendered.before)
        inside = _tokens_in(tokens, (start, start + len(text)))
        spans = [span for span, mine in zip(tokens.covered, inside, strict=True) if mine]
        room = len(spans) - (len(tokens.ids) - self.max_tokens)
        for _, end in reversed(spans[: max(room, 0)]):
            shown = text[: end - start]
            # The token at the cut may become two, and a character may consist of several.
            if shown.strip() and len(self._tokenize(self._framed.around(shown)).ids) <= self.max_tokens:
                return shown
        raise TextTooLongError(f"no token of {where} fits: {self._sizes(text, tokens)}. Use a prompt with fewer shots.")

    def _sizes(self, text: str, tokens: _TokenizedText) -> str:
        start = len(self.rendered.before)
        length = sum(_tokens_in(tokens, (start, start + len(text))))
        assert self.max_tokens is not None, "a model without a length limit has no limit to report"
        rest = f" (of which it keeps {self._reserve} for the label words)" if self._reserve else ""
        return (
            f"the prompt '{self.prompt.name}' has {len(tokens.ids) - length} tokens, the text {length}, and the model "
            f"reads at most {self.max_tokens + self._reserve}{rest}"
        )

    def _tokenize(self, string: str) -> _TokenizedText:
        """The string's tokens with special ones at the beginning, and none after the answer cue.

        A chat template has already written its special tokens.
        """
        plain = self.prompt.chat is None
        encoded = self._tokenizer(
            without_surrogates(string),
            return_offsets_mapping=True,
            add_special_tokens=plain,
            verbose=False,
            padding=False,
            truncation=False,
            split_special_tokens=True,
        )
        owners = encoded.sequence_ids(0)
        length = len(owners)
        while length and owners[length - 1] is None:
            length -= 1
        offsets = tuple(encoded["offset_mapping"][:length])
        covered: list[CharacterSpan] = []
        reached = 0
        for owner, (start, end) in zip(owners[:length], offsets, strict=True):
            if owner is None:
                # No characters: this lies in no span.
                covered.append((-1, -1))
                continue
            # A byte-level tokenizer that trims its offsets gives a token of white space an empty span at its end.
            covered.append((min(start, reached) if start == end else start, end))
            reached = max(reached, end)
        ids = self._names.ids(encoded["input_ids"][:length], owners[:length])
        types = tuple(encoded.get("token_type_ids", [0] * len(owners))[:length])
        return _TokenizedText(ids, types, offsets, tuple(covered))

    def _check_room(self) -> None:
        length = len(self._tokenize(self._framed.around("")).ids)
        if self.max_tokens is not None and length >= self.max_tokens:
            raise InputError(
                f"the prompt '{self.prompt.name}' has {length} tokens, its label words need {self._reserve} more, and "
                f"the model reads at most {self.max_tokens + self._reserve}: no text fits; use fewer or shorter shots."
            )

    def _shown(self, ids: Sequence[int]) -> str:
        return f"[{' '.join(self._tokenizer.convert_ids_to_tokens(list(ids)))}]"


def _template_of(tokenizer: PreTrainedTokenizerBase) -> Template | None:
    """The chat template as a function; reasoning models are told to answer at once."""
    if tokenizer.chat_template is None:
        return None

    def template(messages: list[dict[str, str]]) -> str:
        try:
            return str(
                tokenizer.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
                )
            )
        except (TemplateError, ValueError) as error:
            raise InputError(
                f"the tokenizer's chat template rejects the prompt's messages ({error}): use a prompt without "
                '`system`, with chat = "message", or in plain text.'
            ) from None

    return template


def _tokens_in(tokens: _TokenizedText, span: CharacterSpan) -> list[bool]:
    """Which tokens have a character of the span; a token without characters is where it stands."""
    start, end = span
    return [
        max(first, start) < min(last, end) or (first == last and start <= first < end) for first, last in tokens.covered
    ]


def _clip(span: CharacterSpan, start: int, end: int) -> CharacterSpan:
    """The span's part between start and end, counted from start."""
    return min(max(span[0], start), end) - start, min(max(span[1], start), end) - start


def _shared_prefix(rows: list[TokenRow]) -> int:
    """How many leading tokens are the same in all rows and belong to no unit."""
    shared = 0
    for column in zip(*(zip(row.ids, row.unit_ids, strict=True) for row in rows), strict=False):
        if any(unit != -1 or token != column[0][0] for token, unit in column):
            break
        shared += 1
    return shared
