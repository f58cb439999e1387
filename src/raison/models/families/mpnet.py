"""MPNet: absolute and relative positions, the former counted from 2; the head reads the first token (<s>)."""

from raison.models.families import Family, Parts, ProjectionName

PARTS = Parts(
    attention_norm="attention.LayerNorm",
    value=ProjectionName("attention.attn.v"),
    output=ProjectionName("attention.attn.o"),
    mlp_norm="output.LayerNorm",
    inner=ProjectionName("intermediate.dense"),
    outer=ProjectionName("output.dense"),
    activation="intermediate.intermediate_act_fn",
    head=("classifier.dense", "tanh", "classifier.out_proj"),
)
# Row 1 of the position table is for padding, whatever the config says.
FAMILY = Family(model_types=("mpnet",), pools="first", position_offset=2, parts=PARTS)
