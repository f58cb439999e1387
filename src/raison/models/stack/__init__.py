"""A transformer from outside: its layers and blocks, hooks on its modules, the attention tap, evaluation mode."""
