"""What methods may ask of a model beyond its predictions: one file = one capability."""
