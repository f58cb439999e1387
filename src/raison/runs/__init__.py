"""Runs on disk and their analysis, without a model and without torch."""
