"""T5: relative positions without a limit. A whole T5's head reads the decoder's state at the end token; an encoder's
(raison.models.t5_encoder) the mean of its own states."""

from dataclasses import replace

from transformers import PreTrainedConfig

from raison.models.families import Family

FAMILY = Family(model_types=("t5",), pools=None)


def configure(config: PreTrainedConfig) -> Family:
    """The facts by the model's settings."""
    return FAMILY if config.is_encoder_decoder else replace(FAMILY, pools="mean")
