"""T5: relative positions without a limit; the head reads the decoder's state at the end token, not the encoder's."""

from raison.models.families import Family

FAMILY = Family(model_types=("t5",), pools=None)
