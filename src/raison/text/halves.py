"""Halves of characters: a Python string may hold some, of a program that cut a text within an emoji."""

import re

_HALF = re.compile("[\ud800-\udfff]")


def without_halves(text: str) -> str:
    """The text as tokenizers take it, as long as before: with the replacement character for each half."""
    return _HALF.sub("\ufffd", text)
