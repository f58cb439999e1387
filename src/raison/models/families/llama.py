"""Llama: rotary positions; the score head reads the last token that is not padding."""

from raison.models.families import Family

FAMILY = Family(model_types=("llama",), pools="last")
