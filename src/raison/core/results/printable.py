"""Untrusted text on one line of a terminal: nothing in it can move the cursor, change colours or reverse the text."""

import unicodedata

OVERRIDES = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Overrides of the text's direction, with which one name can look like another."""
_TURNING = frozenset("\u061c\u200e\u200f" + OVERRIDES)


def printable(text: str, keep: str = "") -> str:
    """The text with control characters, direction marks and lone surrogates as escapes, such as \\x1b.

    Characters in `keep`, such as line feeds, stay.
    """
    return "".join(one if one in keep or not _hidden(one) else _escaped(one) for one in text)


def _hidden(one: str) -> bool:
    return one in _TURNING or unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp")


def _escaped(one: str) -> str:
    code = ord(one)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
