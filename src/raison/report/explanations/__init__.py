"""Explanations of a text or of an output, for the terminal and as HTML."""
