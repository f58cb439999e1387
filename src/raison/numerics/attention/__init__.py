"""Attention and token vectors through the layers of a transformer."""
