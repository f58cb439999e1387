"""BERT: absolute positions; the pooler reads the first token ([CLS])."""

from raison.models.families import Family, Parts, Piece

PARTS = Parts(
    attention_norm="attention.output.LayerNorm",
    value=Piece("attention.self.value"),
    output=Piece("attention.output.dense"),
    mlp_norm="output.LayerNorm",
    inner=Piece("intermediate.dense"),
    outer=Piece("output.dense"),
    activation="intermediate.intermediate_act_fn",
    head=("bert.pooler.dense", "tanh", "classifier"),
)
FAMILY = Family(model_types=("bert",), pools="first", parts=PARTS)
