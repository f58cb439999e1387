"""RoBERTa and its relatives: positions count from the padding id plus one; the head reads the first token (<s>)."""

from dataclasses import replace

from transformers import PreTrainedConfig

from raison.models.families import Family, bert

PARTS = replace(bert.PARTS, head=("classifier.dense", "tanh", "classifier.out_proj"))
_SAME_PARTS = ("camembert", "data2vec-text", "roberta", "xlm-roberta")
"""Types whose modules are built and named as RoBERTa's; the others only share its positions."""

FAMILY = Family(
    model_types=(
        "camembert",
        "data2vec-text",
        "esm",
        "ibert",
        "lilt",
        "luke",
        "markuplm",
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
    """Row `pad_token_id` of the position table belongs to padding, and the rows before it to nothing."""
    padding = config.pad_token_id
    family = replace(FAMILY, parts=PARTS if config.model_type in _SAME_PARTS else None)
    return family if padding is None else replace(family, position_offset=padding + 1)
