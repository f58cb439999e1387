"""Figures: what they show, and the drawing."""
