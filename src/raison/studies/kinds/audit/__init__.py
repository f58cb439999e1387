"""Which explanations can be trusted on a model."""
