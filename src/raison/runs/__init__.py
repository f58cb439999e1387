"""Runs on disk and what can be read from them: no model, and never torch."""
