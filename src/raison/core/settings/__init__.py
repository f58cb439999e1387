"""Settings and values from outside, read into records and checked."""
