"""The maximum number of tokens that a model reads."""

from transformers import PreTrainedConfig

from raison.models.families import family_of

_NO_LIMIT = 10**9
"""Tokenizers without a limit of their own report a number above this one."""


_POSITIONS = "max_position_embeddings"
ENCODER = (_POSITIONS, "max_encoder_position_embeddings")
DECODER = (_POSITIONS, "max_decoder_position_embeddings")
"""Settings with the size of a position table; LED has one for each of its stacks."""


def max_tokens(
    config: PreTrainedConfig, tokenizer_limit: int, sizes: tuple[str, ...] = (*ENCODER, *DECODER)
) -> int | None:
    """Longest input in tokens, special tokens included; None if neither model nor tokenizer sets a limit.

    `sizes` is ENCODER or DECODER for one stack of a model that writes; otherwise, every stack reads the whole input.

    The smaller of the model's limit and `tokenizer_limit` (the tokenizer's model_max_length; above 1e9 it means none).
    A model's limit is the size of its position table less the rows that its family leaves unused; for rotary positions
    it is the length that the model was trained for; relative positions (T5) have none. For block-sparse attention
    (BigBird) it is the length up to which such a model has full attention.
    """
    # Names that a config class maps to its own (n_positions of GPT-2) answer to the standard name, too.
    tables = [getattr(config.get_text_config(), name, None) for name in dict.fromkeys(sizes)]
    limits = [] if tokenizer_limit > _NO_LIMIT else [tokenizer_limit]
    family = family_of(config)
    if family.longest is not None:
        limits.append(family.longest)
    # XLNet, whose positions are relative, says -1.
    limits += [positions - family.position_offset for positions in tables if positions is not None and positions > 0]
    return min(limits, default=None)
