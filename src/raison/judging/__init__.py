"""How good explanations are: scores of one method, methods side by side, and what a comparison costs."""
