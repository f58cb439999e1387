"""ModernBERT: rotary positions, local and global layers; the head reads the first token or the mean, as configured."""

from dataclasses import replace

from transformers import PreTrainedConfig

from raison.models.families import Family, Parts, ProjectionName

PARTS = Parts(
    # The first layer has none: the embeddings are normalized.
    attention_norm="attn_norm",
    value=ProjectionName("attn.Wqkv", 2, 3),
    output=ProjectionName("attn.Wo"),
    mlp_norm="mlp_norm",
    # One matrix makes both the activated part and the gate that it is multiplied with.
    inner=ProjectionName("mlp.Wi", 1, 2),
    outer=ProjectionName("mlp.Wo"),
    activation="mlp.act",
    gate=ProjectionName("mlp.Wi", 0, 2),
    norm_first=True,
    final_norm="final_norm",
    head=("head.dense", "head.act", "head.norm", "classifier"),
)
FAMILY = Family(model_types=("modernbert",), pools="first", parts=PARTS)


def configure(config: PreTrainedConfig) -> Family:
    """The pooling is a setting of each model."""
    return replace(FAMILY, pools="mean" if config.classifier_pooling == "mean" else "first")
