"""Resampled intervals, paired and repeated tests, mean ranks, and quality against cost."""
