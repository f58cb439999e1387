"""XLNet: relative positions without a limit; the head reads the last position."""

from raison.models.families import Family

FAMILY = Family(
    model_types=("xlnet",),
    pools="last",
    tokens_first=True,
    turned_inside=True,
    hidden_attention="its attention adds products of content, position and segment in one Einstein sum each, "
    "over tokens before texts",
)
