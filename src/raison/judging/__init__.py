"""The quality of explanations: scores of one method, comparisons of methods, and their cost."""
