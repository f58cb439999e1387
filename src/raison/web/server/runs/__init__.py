"""The runs of a folder: their contents, lines, and slices of these."""
