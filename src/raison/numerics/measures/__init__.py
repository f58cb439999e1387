"""What scores are worth: rankings, curves, agreement of explanations, plausibility, accuracy."""
