"""Learned soft masks: an attribution model's map, its effect on the prediction, and its fine-tuning on a text."""
