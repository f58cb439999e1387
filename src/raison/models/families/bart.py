"""BART: absolute positions counted from 2; the head reads the decoder's state at the last end token."""

from raison.models.families import Family

FAMILY = Family(model_types=("bart",))
