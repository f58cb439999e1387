"""How a prompt is sent, and how its label words are scored."""

from typing import Literal

ChatStyle = Literal["message", "turns"]
"""All in one user message, or every shot as a user message and the assistant's answer."""

Scoring = Literal["word", "first"]
"""Label words of several tokens are scored as sequences, or by their first token only (as in the papers)."""
