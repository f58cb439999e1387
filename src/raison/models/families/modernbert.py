"""ModernBERT: rotary positions, local and global layers; the head reads the first token or the mean, as configured."""

from dataclasses import replace

from transformers import PreTrainedConfig

from raison.models.families import Family

FAMILY = Family(model_types=("modernbert",), pools="first")


def configure(config: PreTrainedConfig) -> Family:
    """The pooling is a setting of each model."""
    return replace(FAMILY, pools="mean" if config.classifier_pooling == "mean" else "first")
