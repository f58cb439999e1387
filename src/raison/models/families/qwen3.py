"""Qwen 2 and 3: rotary positions; the score head reads the last token that is not padding."""

from raison.models.families import Family
from raison.models.families.llama import PARTS

FAMILY = Family(model_types=("qwen2", "qwen3"), pools="last", parts=PARTS)
