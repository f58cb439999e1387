"""Answers from sources: the prompt, the statements of an answer, and what tests whether a source was needed."""
