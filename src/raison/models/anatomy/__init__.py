"""The layers of a model taken apart, and which states its head reads."""
