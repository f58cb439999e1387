"""A chat as a language model reads it: messages, documents, and tools that the model may call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Message = Mapping[str, Any]
"""A turn of a chat: "role" and "content". The result of a tool is a message of the role "tool"."""


@dataclass(frozen=True, slots=True)
class Chat:
    """Messages with `documents` and `tools`, which the tokenizer's own chat template puts where the model expects them.

    A document is a mapping of strings, usually "title" and "text". Units are found in the contents of messages and in
    documents; each of these is one unit under unit="part". Tools are functions or JSON schemas; they are never scored.
    """

    messages: Sequence[Message]
    documents: Sequence[Mapping[str, str]] = ()
    tools: Sequence[Any] = ()
