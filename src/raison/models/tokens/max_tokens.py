"""The maximum number of tokens that a model reads."""

from transformers import PreTrainedConfig

from raison.models.families import family_of

_NO_LIMIT = 10**9
"""Tokenizers without a limit of their own report a number above this one."""


def max_tokens(config: PreTrainedConfig, tokenizer_limit: int) -> int | None:
    """Longest input in tokens, special tokens included; None if neither model nor tokenizer sets a limit.

    The smaller of the model's limit and `tokenizer_limit` (the tokenizer's model_max_length; above 1e9 it means none).
    A model's limit is the size of its position table less the rows that its family leaves unused; for rotary positions
    it is the length that the model was trained for; relative positions (T5) have none. For block-sparse attention
    (BigBird) it is the length up to which such a model has full attention.
    """
    # Names that a config class maps to its own (n_positions of GPT-2) answer to the standard name, too.
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    limits = [] if tokenizer_limit > _NO_LIMIT else [tokenizer_limit]
    family = family_of(config)
    if family.longest is not None:
        limits.append(family.longest)
    # XLNet, whose positions are relative, says -1.
    if positions is not None and positions > 0:
        limits.append(positions - family.position_offset)
    return min(limits, default=None)
