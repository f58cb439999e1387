"""Models that are trained to explain themselves."""
