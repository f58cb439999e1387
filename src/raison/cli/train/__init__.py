"""raison train: one file for each kind of training."""
