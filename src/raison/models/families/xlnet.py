"""XLNet: relative positions without a limit; the head reads the last position."""

from raison.models.families import Family

FAMILY = Family(
    model_types=("xlnet",),
    pools="last",
    tokens_first=True,
    turned_inside=True,
    hidden_attention="its attention scores are sums of a content, a position and a segment term, each computed by "
    "one Einstein sum, with the token axis before the batch axis",
)
