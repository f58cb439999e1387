"""What is given: texts, units, parts, encodings."""
