"""DeBERTa: disentangled relative positions; the pooler reads the first token ([CLS])."""

from dataclasses import replace

from transformers import PreTrainedConfig

from raison.models.families import Family, Parts, ProjectionName

PARTS = Parts(
    attention_norm="attention.output.LayerNorm",
    # One matrix makes queries, keys and values, head by head; their biases stand apart.
    value=ProjectionName("attention.self.in_proj", 2, 3, by_head=True, bias="attention.self.v_bias"),
    output=ProjectionName("attention.output.dense"),
    mlp_norm="output.LayerNorm",
    inner=ProjectionName("intermediate.dense"),
    outer=ProjectionName("output.dense"),
    activation="intermediate.intermediate_act_fn",
    head=("pooler.dense", "gelu", "classifier"),
)
FAMILY = Family(model_types=("deberta",), pools="first", turned_inside=True, parts=PARTS)


def configure(config: PreTrainedConfig) -> Family:
    """The pooler's function is a setting. Talking heads mix the heads' attention."""
    talking = config.to_dict().get("talking_head", False)
    head = ("pooler.dense", config.pooler_hidden_act, "classifier")
    return replace(FAMILY, parts=None if talking else replace(PARTS, head=head))
