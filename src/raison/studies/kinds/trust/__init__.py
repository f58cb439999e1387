"""Explanations of randomised models, and under attack."""
