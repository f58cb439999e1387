"""Llama: rotary positions; the score head reads the last token that is not padding."""

from raison.models.families import Family, Parts, ProjectionName

PARTS = Parts(
    attention_norm="input_layernorm",
    value=ProjectionName("self_attn.v_proj"),
    output=ProjectionName("self_attn.o_proj"),
    mlp_norm="post_attention_layernorm",
    inner=ProjectionName("mlp.up_proj"),
    outer=ProjectionName("mlp.down_proj"),
    activation="mlp.act_fn",
    gate=ProjectionName("mlp.gate_proj"),
    norm_first=True,
    final_norm="norm",
)
FAMILY = Family(model_types=("llama",), pools="last", parts=PARTS)
