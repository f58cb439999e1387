"""The losses: one file is one loss."""
