"""Criteria of interpretability, one file each; see raison.training.self_explaining.criterion."""
