"""What a training needs before it begins: its texts, their batches, and checks of model and data."""
