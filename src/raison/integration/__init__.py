"""Shared by methods that integrate gradients along paths: baselines, batches of paths, sums."""
