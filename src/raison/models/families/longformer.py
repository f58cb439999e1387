"""Longformer: positions count from the padding id plus one; the head reads the first token (<s>)."""

from dataclasses import replace

from transformers import PreTrainedConfig

from raison.models.families import Family

FAMILY = Family(
    model_types=("longformer",),
    pools="first",
    position_offset=2,
    turned_inside=True,
    hidden_attention=(
        "its attention is computed in overlapping windows, with global attention of the first token, and never as one "
        "matrix of queries and keys"
    ),
)


def configure(config: PreTrainedConfig) -> Family:
    """Row `pad_token_id` of the position table belongs to padding, and the rows before it to nothing."""
    return FAMILY if config.pad_token_id is None else replace(FAMILY, position_offset=config.pad_token_id + 1)
