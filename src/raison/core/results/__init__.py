"""What comes out: explanations and scores, in JSON and back."""
