"""Halves of characters (lone surrogates), as in a text that a program cut within an emoji."""

import re

_HALF = re.compile("[\ud800-\udfff]")


def without_halves(text: str) -> str:
    """The text as tokenizers take it, as long as before: with the replacement character for each half."""
    return _HALF.sub("\ufffd", text)
