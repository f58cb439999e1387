"""Results: explanations and scores, in JSON and back."""
