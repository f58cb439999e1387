"""Study files: a grid of models, data, methods and metrics, checked as a whole and then run, resumable."""
