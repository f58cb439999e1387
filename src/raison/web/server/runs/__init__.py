"""The runs of a folder: what is held, its lines, and slices of them."""
