"""Reads texts and names as callers give them, one or any sequence from any library, into plain values."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeGuard, TypeVar, cast

from raison.core.errors import InputError
from raison.core.inputs.chat import Chat
from raison.core.inputs.missing import is_missing
from raison.core.inputs.parts import Given, PartedText, Spans, parted, plain
from raison.core.inputs.unit import PART, SIDES, Granularity, check_unit, segments
from raison.core.model import LanguageModel
from raison.core.targets.choices import SingleTarget
from raison.data.dataset import Contrast, Dataset
from raison.models.tokens.token_rows import name_of as name_of_text
from raison.text.segment import sentence_spans, word_spans
from raison.text.surrogates import joined, joined_within

Texts = Iterable[Given] | Iterable[Mapping[str, Any]] | Dataset
"""Several texts: a list, a tuple, an array, a pandas Series, a column of a data set, or rows with one named column."""

PromptInput = Given | Chat
"""The input of a language model."""

Q = TypeVar("Q", bound=PromptInput)

_CODE = re.compile("([A-Za-z]{2,3})([-_][A-Za-z0-9]+)*")
"""A code of ISO 639, perhaps with a region or script, which has no separate rules."""


@dataclass(frozen=True, slots=True)
class GivenTexts(Generic[Q]):
    """A caller's texts and what receives a score in them; `single`: one text was given, not a sequence."""

    texts: list[Q]
    unit: Granularity
    single: bool


@dataclass(frozen=True, slots=True)
class InputOptions:
    """How a caller's texts become texts with units: the arguments of that name, `column` being `text`."""

    unit: Granularity | None = None
    units: Any = None
    column: str | list[str] | None = None
    language: str | None = None

    def several(self, given: Any, single: bool = False) -> tuple[list[Given], Granularity]:
        """Any sequence of texts, and what receives a score; of a `single` one, the spans are its own.

        Raises InputError, also where there is none.
        """
        spans = self._spans
        texts = read_texts(given, self.column, [spans] if single and spans is not None else spans)
        if not texts:
            raise InputError("no text given: pass a list of at least one text.")
        return self._settled(texts)

    def any(self, given: Any) -> GivenTexts[Given]:
        """One text or any sequence of them."""
        if not is_one(given) or self.column is not None:
            return GivenTexts(*self._settled(read_texts(given, self.column, self._spans)), single=False)
        text = text_of(given, "the text")
        parted_text = text if self._spans is None else with_parts(text, self._spans)
        return GivenTexts(*self._settled([parted_text]), single=True)

    def prompts(self, given: Any) -> GivenTexts[PromptInput]:
        """The same for a language model's prompts."""
        if isinstance(self.units, str) and self.units in SIDES:
            raise InputError(
                f"units='{self.units}' applies to texts of several strings, and a prompt is a single string: leave it "
                "out."
            )
        prompts, single = read_prompts(given, self.column, self.units)
        return GivenTexts(*self._settled(prompts), single)

    @property
    def _spans(self) -> Any:
        """The spans in `units`."""
        return None if isinstance(self.units, str) and self.units in SIDES else self.units

    def _settled(self, texts: list[Q]) -> tuple[list[Q], Granularity]:
        if isinstance(self.units, str) and self.units in SIDES:
            side, unit = SIDES.index(self.units), self.unit or "word"
            return [cast("Q", on_side(cast("Given", text), side, unit, self.language)) for text in texts], PART
        if self.language is None:
            return texts, unit_of(self.unit, texts, self.units)
        if self.unit != "sentence" or self.units is not None:
            raise InputError("language= applies to sentences only: use unit='sentence', and leave units out.")
        return [cast("Q", in_sentences(text, self.language)) for text in texts], PART


def on_side(given: Given, side: int, unit: Granularity, language: str | None) -> PartedText:
    """The text with the words or sentences of one of its strings as parts. Raises InputError."""
    if isinstance(given, PartedText):
        raise InputError("the text already has its own parts: leave units= out.")
    strings = segments(given)
    if len(strings) == 1 or len(strings) <= side:
        raise InputError(f"units='{SIDES[side]}' needs texts of several strings, and {given!r:.60} has {len(strings)}.")
    if unit not in ("word", "sentence") or (language is not None and unit != "sentence"):
        raise InputError(
            f"units='{SIDES[side]}' needs unit='word' or unit='sentence', and language= needs unit='sentence'."
        )
    spans = word_spans(strings[side]) if unit == "word" else sentence_spans(strings[side], _code(language or "en"))
    if not spans:
        raise InputError("the text is empty or blank: there is nothing to explain.")
    return replace(parted(given, [(start, end, side) for start, end in spans]), found=True)


def _code(language: object) -> str:
    """The language of a code, without region and script. Raises InputError."""
    code = _CODE.fullmatch(language) if isinstance(language, str) else None
    if code is None:
        raise InputError(f"language= is {language!r:.40}: give the code of a language, such as 'de'.")
    return code[1].lower()


def in_sentences(text: PromptInput, language: str) -> PartedText:
    """The text with its sentences as parts, by the rules of a language. Raises InputError."""
    if isinstance(text, Chat):
        raise InputError(
            "language= does not apply to chats: leave it out, and use unit='sentence' for the sentences of messages."
        )
    code = _code(language)
    whole = plain(text)
    spans = [
        (start, end, number)
        for number, string in enumerate(segments(whole))
        for start, end in sentence_spans(string, code)
    ]
    if not spans:
        raise InputError("the text is empty or blank: there is nothing to explain.")
    return replace(parted(whole, spans), found=True)


def read_texts(given: Any, column: str | list[str] | None = None, units: Any = None) -> list[Given]:
    """Any sequence of texts (see Texts) as a list; of rows, `column` is read, or two of them as pairs.

    With `units`, one entry of spans for each text, they become parted ones. Raises InputError, with the number of an
    entry that is no text.
    """
    items = list(given.parted if isinstance(given, Dataset) and column is None else _items(given, column))
    texts = [text_of(item, name_of_text(place, len(items))) for place, item in enumerate(items)]
    return texts if units is None else list(_all_parted(texts, units))


def _all_parted(texts: Sequence[Given], units: Any) -> Iterable[PartedText]:
    spans = list(units) if isinstance(units, Iterable) and not isinstance(units, str | bytes | Mapping) else None
    if spans is None or len(spans) != len(texts):
        texts_need = "1 text needs" if len(texts) == 1 else f"{len(texts)} texts need"
        raise InputError(f"{texts_need} a list of units of the same length, with the spans of each text.")
    return (with_parts(text, parts) for text, parts in zip(texts, spans, strict=True))


def read_prompts(
    given: Any, column: str | list[str] | None = None, units: Any = None
) -> tuple[list[PromptInput], bool]:
    """One prompt, chat or parted text, or any sequence of these, as a list; and whether a single one was given.

    A list of messages (mappings) is one chat, and so is a single message. Raises InputError.
    """
    if isinstance(given, Mapping) and isinstance(given.get("role"), str):
        given = [given]
    one = isinstance(given, str | bytes | PartedText | Chat) or not isinstance(given, Iterable | Dataset)
    items = [given] if one else list(_items(given, column, rows=True))
    if not one and column is None and items and all(isinstance(item, Mapping) for item in items):
        one, items = True, [Chat(tuple(items))]
    if not items:
        raise InputError("a language model needs a prompt, a chat, or a list of at least one prompt.")
    names = ["the prompt"] if one else [name_of_text(place, len(items)) for place in range(len(items))]
    prompts = [_prompt_of(item, name) for item, name in zip(items, names, strict=True)]
    if units is None:
        return prompts, one
    if any(isinstance(prompt, Chat) for prompt in prompts):
        raise InputError("units= are spans of a prompt; the parts of a chat are its messages: use unit='part'.")
    texts = cast("list[Given]", prompts)
    return [with_parts(texts[0], units)] if one else list(_all_parted(texts, units)), one


def _prompt_of(item: Any, place: str) -> PromptInput:
    if isinstance(item, PartedText):
        return item
    if isinstance(item, Chat):
        return joined_within(item)
    if isinstance(item, str):
        return joined(str(item))
    if isinstance(item, list | tuple) and item and all(isinstance(message, Mapping) for message in item):
        return joined_within(Chat(tuple(item)))
    raise InputError(
        f"{place} is {item!r:.60}, of type {type(item).__name__}: a prompt is a string, a chat a list of messages with "
        f"'role' and 'content'{_way_out(item)}."
    )


def text_of(item: Any, place: str) -> Given:
    """One text, whatever kind of string it was. Raises InputError that names its place."""
    if isinstance(item, PartedText):
        return item
    if isinstance(item, str):
        return joined(str(item))
    if isinstance(item, tuple) and all(isinstance(part, str) for part in item):
        parts = tuple(joined(str(part)) for part in item)
        if len(parts) == 2 or len(parts) == 3:
            return parts
    if isinstance(item, LanguageModel):
        raise InputError(f"{place} is a model: the model comes first, then the text.")
    raise InputError(
        f"{place} is {item!r:.60}, of type {type(item).__name__}: a text is a string, or a pair of two "
        f"strings{_way_out(item)}."
    )


def _way_out(item: object) -> str:
    """How a text may be made of what is none, to follow what a text is; "" where there is no telling."""
    parts = item if isinstance(item, tuple) else (item,)
    if any(isinstance(part, bytes | bytearray) for part in parts):
        return ". Decode bytes first, as with .decode()"
    if any(map(is_missing, parts)):
        return ". Leave missing texts out, as with .dropna() of pandas"
    return "; a pair is a tuple, not a list" if isinstance(item, list) and len(item) == 2 else ""


def with_parts(text: Given, spans: Spans) -> PartedText:
    """The text with the caller's parts. Raises InputError."""
    if isinstance(text, PartedText):
        raise InputError("the text already has its own parts: leave units= out.")
    return parted(text, spans)


def is_one(given: object) -> bool:
    """Whether this is a single text: a string, a parted text, or a tuple of two strings, which is a pair.

    Anything that is not a sequence counts as one, and is then refused as a text.
    """
    if isinstance(given, tuple):
        return len(given) == 2 and all(isinstance(part, str) for part in given)
    return isinstance(given, str | bytes | PartedText) or not isinstance(given, Iterable | Dataset)


def unit_of(unit: Granularity | None, texts: Sequence[PromptInput], units: object = None) -> Granularity:
    """What receives a score: by default the parts of texts that have them, otherwise words.

    Raises InputError if only some of the texts have parts, and for `units` together with `unit`.
    """
    if unit not in (None, PART) and units is not None:
        raise InputError("units= and unit= exclude each other: leave unit out.")
    with_them = [isinstance(text, PartedText) for text in texts]
    if unit in (None, PART) and any(with_them) and not all(with_them):
        name = name_of_text(with_them.index(False), len(texts))
        raise InputError(f"{name} has no parts of its own, but others have: give units for all, or use unit='word'.")
    if unit is not None:
        return check_unit(unit)
    return PART if any(with_them) else "word"


def read_names(given: Any) -> list[Any]:
    """Names, calls or instances as a list: one alone, or any sequence of them."""
    if isinstance(given, str | type) or not isinstance(given, Iterable):
        return [str(given) if isinstance(given, str) else given]
    return [str(one) if isinstance(one, str) else one for one in given]


def _items(given: Any, column: str | list[str] | None, rows: bool = False) -> Iterable[Any]:
    """The items of a sequence, or a column of it. InputError for rows without a named column, unless `rows` allows
    them."""
    if isinstance(given, str | bytes | Set) or not isinstance(given, Iterable | Dataset):
        raise InputError(f"texts are {given!r:.60}, of type {type(given).__name__}: give a list of at least one text.")
    if isinstance(column, list):
        if len(column) != 2:
            raise InputError(f"text= is {column!r:.60}: name one column, or two, [first, second], for pairs of texts.")
        table = given if isinstance(given, Dataset) or _is_table(given) else list(_entries(given))
        first, second = (list(_column(table, one)) for one in column)
        if len(first) != len(second):
            raise InputError(
                f"the columns {column!r:.60} have {len(first)} and {len(second)} texts: give as many of each."
            )
        return zip(first, second, strict=True)
    if column is not None:
        return _column(given, column)
    if _is_table(given):
        names = ", ".join(map(str, given))
        raise InputError(f"texts are a table with the columns {names}: name the column of the texts with text=.")
    items = list(_entries(cast("Iterable[Any]", given)))
    if items and isinstance(items[0], Mapping) and not rows:
        if {"role", "content"} <= items[0].keys():
            raise InputError(
                "this is a chat, which generative language models read, and this model is a classifier: give its "
                "text, or load a causal language model without a prompt."
            )
        names = ", ".join(map(str, items[0]))
        raise InputError(f"texts are rows with the columns {names}: name the column of the texts with text=.")
    return items


def _is_table(given: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Whether it has named columns. pandas takes half a second to import, so a DataFrame is checked only if it is
    imported."""
    pandas = sys.modules.get("pandas")
    return isinstance(given, Mapping) or (pandas is not None and isinstance(given, pandas.DataFrame))


def _entries(given: Iterable[Any]) -> Iterable[Any]:
    try:
        return iter(given)
    except TypeError:
        # An array without an axis.
        raise InputError(f"texts are {given!r:.60}: give a list of at least one text.") from None


def _column(given: Any, column: str) -> Iterable[Any]:
    """A column of a table, or of rows."""
    if not isinstance(column, str | int):
        raise InputError(f"text= is {column!r:.60}: give the name of a column, or a list of two names for pairs.")
    if isinstance(given, Dataset):
        raise InputError("text= names a column of rows, and this data set already knows its texts: leave text out.")
    if _is_table(given):
        names, values = list(map(str, given)), given.get(column)
    else:
        rows = list(_entries(cast("Iterable[Any]", given)))
        wrong = next((place for place, row in enumerate(rows) if not isinstance(row, Mapping)), None)
        if wrong is not None:
            name = name_of_text(wrong, len(rows))
            raise InputError(f"{name} is {rows[wrong]!r:.60}: text= names a column, and this is not a row.")
        names = [] if not rows else list(map(str, rows[0]))
        values = None if rows and any(column not in row for row in rows) else [row[column] for row in rows]
    if isinstance(values, str | bytes) or not isinstance(values, Iterable | None):
        raise InputError(
            f"text= names a column of many rows, and this is one row: give row[{column!r}], or a list of rows."
        )
    if _is_table(values):
        raise InputError(
            f"'{column}' is no column but a table, as where several columns have this name: give one column."
        )
    if values is None:
        raise InputError(f"there is no column '{column}' in all rows; the first has {', '.join(names) or 'none'}.")
    return values


def against(model: LanguageModel, target: object, contrast: Contrast) -> SingleTarget:
    """The pair (this, not that) that a column's contrast makes of a target; None is the predicted class.

    Digits are a class's number unless a class has this name. Raises InputError.
    """
    if isinstance(contrast, tuple):
        raise InputError(
            f"the contrast {contrast!r:.60} is a list, which only generative models accept: name one class."
        )
    if target is not None and (isinstance(target, tuple | list) or not isinstance(target, str | int)):
        raise InputError("the contrast comes from a column: name one class as the target, or none.")
    named = isinstance(contrast, int) or contrast in model.classes or not contrast.isdecimal()
    return target, contrast if named else int(contrast)
