"""Halves of characters (lone surrogates), as in a text that a program cut within an emoji."""

import re

_HALF = re.compile("[\ud800-\udfff]")


def without_halves(text: str) -> str:
    """The text in a form that tokenizers accept, of the same length: each half becomes the replacement character."""
    return _HALF.sub("\ufffd", text)
