"""Llama: rotary positions; the score head reads the last token that is not padding."""

from raison.models.families import Family, Parts, Piece

PARTS = Parts(
    attention_norm="input_layernorm",
    value=Piece("self_attn.v_proj"),
    output=Piece("self_attn.o_proj"),
    mlp_norm="post_attention_layernorm",
    inner=Piece("mlp.up_proj"),
    outer=Piece("mlp.down_proj"),
    activation="mlp.act_fn",
    gate=Piece("mlp.gate_proj"),
    norm_first=True,
    final_norm="norm",
)
FAMILY = Family(model_types=("llama",), pools="last", parts=PARTS)
