"""T5: relative positions without a limit. A whole T5's head reads the decoder's state at the end token; an encoder's
(raison.models.loading.t5_encoder) the mean of its own states."""

from dataclasses import replace

from transformers import PreTrainedConfig

from raison.models.families import Family, Parts, ProjectionName

_FEED_FORWARD = "layer.1.DenseReluDense"
PARTS = Parts(
    attention_norm="layer.0.layer_norm",
    value=ProjectionName("layer.0.SelfAttention.v"),
    output=ProjectionName("layer.0.SelfAttention.o"),
    mlp_norm="layer.1.layer_norm",
    inner=ProjectionName(f"{_FEED_FORWARD}.wi"),
    outer=ProjectionName(f"{_FEED_FORWARD}.wo"),
    activation=f"{_FEED_FORWARD}.act",
    norm_first=True,
    final_norm="encoder.final_layer_norm",
    head=("classifier",),
)
GATED = replace(PARTS, inner=ProjectionName(f"{_FEED_FORWARD}.wi_1"), gate=ProjectionName(f"{_FEED_FORWARD}.wi_0"))
FAMILY = Family(model_types=("t5",), pools=None)


def configure(config: PreTrainedConfig) -> Family:
    """The facts by the model's settings."""
    if config.is_encoder_decoder:
        return FAMILY
    return replace(FAMILY, pools="mean", parts=GATED if config.is_gated_act else PARTS)
