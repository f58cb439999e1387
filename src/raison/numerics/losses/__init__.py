"""Losses of explainers and of models that explain themselves."""
