"""Training: a loop that knows no language model, its losses, and recipes that use them."""
