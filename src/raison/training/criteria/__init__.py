"""Criteria of interpretability, one file each; see raison.training.criterion."""
