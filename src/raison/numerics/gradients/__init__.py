"""Paths between embeddings, their baselines and quadrature, finite differences in place of slopes."""
