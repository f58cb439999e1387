"""BERT: absolute positions; the pooler reads the first token ([CLS])."""

from raison.models.families import Family, Parts, ProjectionName

PARTS = Parts(
    attention_norm="attention.output.LayerNorm",
    value=ProjectionName("attention.self.value"),
    output=ProjectionName("attention.output.dense"),
    mlp_norm="output.LayerNorm",
    inner=ProjectionName("intermediate.dense"),
    outer=ProjectionName("output.dense"),
    activation="intermediate.intermediate_act_fn",
    head=("bert.pooler.dense", "tanh", "classifier"),
)
FAMILY = Family(model_types=("bert",), pools="first", parts=PARTS)
