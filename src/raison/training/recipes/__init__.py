"""Recipes: a classifier, an explainer by attributive masking, a model that explains itself."""
