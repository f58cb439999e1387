"""Whether two short answers are the same."""

import re
import string

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def same_answer(one: str, other: str) -> bool:
    """Whether two answers are equal, ignoring case, articles, punctuation and white space, as SQuAD compares them."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    letters = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(_ARTICLES.sub(" ", letters).split())
