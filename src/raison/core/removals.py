"""The names of the removals that a tokenizer may allow. An adapter may have others of its own."""

from typing import Literal, get_args

InPlace = Literal["mask", "ellipsis", "unk", "pad"]
"""A token replaces each absent one, so that the text keeps its length."""
IN_PLACE_NAMES: tuple[InPlace, ...] = get_args(InPlace)
Removal = Literal[InPlace, "delete"]
REMOVALS: tuple[Removal, ...] = get_args(Removal)
