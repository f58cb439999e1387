"""Mistral: rotary positions, attention within a sliding window; the score head reads the last token."""

from raison.models.families import Family
from raison.models.families.llama import PARTS

FAMILY = Family(model_types=("mistral",), pools="last", parts=PARTS)
