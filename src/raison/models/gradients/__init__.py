"""Backward passes: gradients along paths, other rules of the way back, embeddings that are given or shifted."""
