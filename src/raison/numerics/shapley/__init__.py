"""Shapley and Owen values of a set function, by several estimators."""
