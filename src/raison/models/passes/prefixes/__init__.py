"""Shared beginnings are read once: trees of tokens, stored prompts, causal models."""
