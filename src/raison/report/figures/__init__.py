"""Figures: their data and the drawing."""
