"""Recipes: one file for each training, and the card that a training writes."""
