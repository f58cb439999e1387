"""From hidden states and outputs to logits: heads, readouts, vectors."""
