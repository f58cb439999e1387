"""Learned soft masks: an attribution model's map, what it does to the prediction, and its fine-tuning on a text."""
