"""DistilBERT: absolute positions; the head reads the first token ([CLS])."""

from raison.models.families import Family, Parts, ProjectionName

PARTS = Parts(
    attention_norm="sa_layer_norm",
    value=ProjectionName("attention.v_lin"),
    output=ProjectionName("attention.out_lin"),
    mlp_norm="output_layer_norm",
    inner=ProjectionName("ffn.lin1"),
    outer=ProjectionName("ffn.lin2"),
    activation="ffn.activation",
    head=("pre_classifier", "relu", "classifier"),
)
FAMILY = Family(model_types=("distilbert",), pools="first", parts=PARTS)
