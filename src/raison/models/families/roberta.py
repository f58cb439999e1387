"""RoBERTa and its relatives: positions count from the padding id plus one; the head reads the first token (<s>)."""

from dataclasses import replace

from transformers import PreTrainedConfig

from raison.models.families import Family

FAMILY = Family(
    model_types=(
        "camembert",
        "data2vec-text",
        "ibert",
        "longformer",
        "luke",
        "mpnet",
        "roberta",
        "roberta-prelayernorm",
        "xlm-roberta",
        "xlm-roberta-xl",
        "xmod",
    ),
    pools="first",
    position_offset=2,
)


def configure(config: PreTrainedConfig) -> Family:
    """Row `pad_token_id` of the position table belongs to padding, and the rows before it to nothing.

    MPNet takes 1 for the padding's row whatever its config says.
    """
    padding = 1 if config.model_type == "mpnet" else config.pad_token_id
    return FAMILY if padding is None else replace(FAMILY, position_offset=padding + 1)
