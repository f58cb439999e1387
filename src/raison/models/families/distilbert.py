"""DistilBERT: absolute positions; the head reads the first token ([CLS])."""

from raison.models.families import Family, Parts, Piece

PARTS = Parts(
    attention_norm="sa_layer_norm",
    value=Piece("attention.v_lin"),
    output=Piece("attention.out_lin"),
    mlp_norm="output_layer_norm",
    inner=Piece("ffn.lin1"),
    outer=Piece("ffn.lin2"),
    activation="ffn.activation",
    head=("pre_classifier", "relu", "classifier"),
)
FAMILY = Family(model_types=("distilbert",), pools="first", parts=PARTS)
