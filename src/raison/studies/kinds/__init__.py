"""The kinds of studies: one folder each, found by its name."""
