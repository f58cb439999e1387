"""Lone surrogates: halves of characters, as in a text that a program cut within an emoji."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """The text as tokenizers take it, as long as before: with the replacement character for each surrogate."""
    return _SURROGATE.sub("\ufffd", text)
