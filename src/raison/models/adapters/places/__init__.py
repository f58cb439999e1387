"""Predictions at places of a text: spans, tags and masks."""
