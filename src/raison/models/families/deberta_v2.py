"""DeBERTa-v2 and v3: disentangled relative positions; the pooler reads the first token ([CLS])."""

from dataclasses import replace

from transformers import PreTrainedConfig

from raison.models.families import Family, Parts, ProjectionName

PARTS = Parts(
    attention_norm="attention.output.LayerNorm",
    value=ProjectionName("attention.self.value_proj"),
    output=ProjectionName("attention.output.dense"),
    mlp_norm="output.LayerNorm",
    inner=ProjectionName("intermediate.dense"),
    outer=ProjectionName("output.dense"),
    activation="intermediate.intermediate_act_fn",
    head=("pooler.dense", "gelu", "classifier"),
)
FAMILY = Family(model_types=("deberta-v2",), pools="first", turned_inside=True, parts=PARTS)


def configure(config: PreTrainedConfig) -> Family:
    """The pooler's function is a setting. With a convolution after the first layer, the layers do not form a chain."""
    convolved = config.to_dict().get("conv_kernel_size", 0) > 0
    head = ("pooler.dense", config.pooler_hidden_act, "classifier")
    return replace(FAMILY, parts=None if convolved else replace(PARTS, head=head))
