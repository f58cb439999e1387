"""Explanations of whole files on disk: rows, shards, their folder, and what they come to; never torch."""
