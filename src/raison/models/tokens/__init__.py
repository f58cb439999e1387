"""Texts to rows of tokens: encoders, prompts, label words, continuations, length limits."""
