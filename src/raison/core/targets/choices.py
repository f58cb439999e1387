"""What a call may name, wherever it is written: the types of these names, without torch."""

from typing import Literal

Of = Literal["probability", "logit", "log_odds", "margin", "log_probability"]
Named = str | int | tuple[str | int, str | int]
"""What is explained at a place, or this and not that: a tag, a word, or a word's number in the vocabulary."""
At = tuple[int, Named] | tuple[int, int, Named]
"""A masked word by its number and what is explained there; or a span of characters and its tag."""
One = str | int | tuple[str | int | None, str | int] | At
TargetSpec = None | One | list[int] | list[str] | list[str | int] | list[One]
"""None for the predicted class (or a model's one number), a label's name or index, a pair (this, not that), or a list
of each text's class or pair. In a pair, None is the predicted class.

Where a model answers questions, a string is a part of the context, and a list of strings names one for each text. Of a
model that tags tokens or fills in masked words, a target also says where, see raison.core.targets.choosing.
"""
EACH = "each"
"""As a target: every label from a threshold on, each with an explanation of its own."""
Explained = Literal["input", "prompt"]
"""What of a prompted model's input receives scores: the text alone, or the prompt's sentences and shots, too."""
Dtype = Literal["float32", "bfloat16", "float16", "auto"]
