"""Checks and measurements of a model on real texts."""
