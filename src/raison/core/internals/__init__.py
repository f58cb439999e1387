"""What happens inside a model, as records."""
