"""Lone surrogates: halves of characters, as in a text that a program cut within an emoji."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def without_surrogates(text: str) -> str:
    """The text as tokenizers take it, as long as before: with the replacement character for each surrogate."""
    return _SURROGATE.sub("\ufffd", text)


def joined(text: str) -> str:
    """The text with both halves of a character, one after the other, as that character, as it is in JSON and UTF-8."""
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
