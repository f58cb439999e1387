"""GPT-2: absolute positions; the score head reads the last token that is not padding."""

from raison.models.families import Family, Parts, ProjectionName

PARTS = Parts(
    attention_norm="ln_1",
    # One matrix makes queries, keys and values.
    value=ProjectionName("attn.c_attn", 2, 3),
    output=ProjectionName("attn.c_proj"),
    mlp_norm="ln_2",
    inner=ProjectionName("mlp.c_fc"),
    outer=ProjectionName("mlp.c_proj"),
    activation="mlp.act",
    norm_first=True,
    final_norm="ln_f",
)
FAMILY = Family(model_types=("gpt2",), pools="last", parts=PARTS)
