"""Inputs: texts, units, parts, encodings."""
