"""Searches and fits that see a model as a function of subsets."""
