"""ALBERT: absolute positions; the pooler reads the first token ([CLS]). One module is run as several layers."""

from dataclasses import replace

from transformers import PreTrainedConfig

from raison.models.families import Family, Parts, ProjectionName

# A layer is a group of modules that are run one after the other; every released model has one in each.
PARTS = Parts(
    attention_norm="albert_layers.0.attention.LayerNorm",
    value=ProjectionName("albert_layers.0.attention.value"),
    output=ProjectionName("albert_layers.0.attention.dense"),
    mlp_norm="albert_layers.0.full_layer_layer_norm",
    inner=ProjectionName("albert_layers.0.ffn"),
    outer=ProjectionName("albert_layers.0.ffn_output"),
    activation="albert_layers.0.activation",
    head=("albert.pooler", "tanh", "classifier"),
)
FAMILY = Family(model_types=("albert",), pools="first", parts=PARTS)


def configure(config: PreTrainedConfig) -> Family:
    """Layers are divided evenly among the groups, as in AlbertTransformer."""
    inner, share = config.inner_group_num, config.num_hidden_layers / config.num_hidden_groups
    groups = [int(layer / share) for layer in range(config.num_hidden_layers)]
    order = tuple(group * inner + place for group in groups for place in range(inner))
    return replace(FAMILY, order=order)
