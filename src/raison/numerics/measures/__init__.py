"""Measures of scores: rankings, curves, agreement of explanations, plausibility, accuracy."""
