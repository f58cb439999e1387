"""Backward passes: gradients along paths, other backward rules, given or shifted embeddings."""
