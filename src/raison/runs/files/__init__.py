"""Explanations of whole files on disk: rows, shards, their folder and summary. Nothing here needs torch."""
