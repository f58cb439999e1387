"""The training loop, which knows no language model: batches, losses, checkpoints, the search over weights."""
