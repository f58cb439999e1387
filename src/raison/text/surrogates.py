"""Lone surrogates: halves of characters, as in a text that a program cut within an emoji."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TypeVar

from raison.core.inputs.chat import Chat

T = TypeVar("T")

_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def without_surrogates(text: str) -> str:
    """The text as tokenizers take it, as long as before: with the replacement character for each surrogate."""
    return _SURROGATE.sub("\ufffd", text)


def joined(text: str) -> str:
    """The text with both halves of a character, one after the other, as that character, as it is in JSON and UTF-8."""
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)


def joined_within(value: T) -> T:
    """The same of every string in a chat, a list or a mapping; anything else as it is."""
    new: object = value
    if isinstance(value, str):
        new = joined(value)
    elif isinstance(value, Chat):
        new = replace(value, **{one.name: joined_within(getattr(value, one.name)) for one in fields(value)})
    elif isinstance(value, list | tuple):
        new = type(value)(map(joined_within, value))
    elif isinstance(value, Mapping):
        new = {key: joined_within(one) for key, one in value.items()}
    return new  # type: ignore[return-value]
