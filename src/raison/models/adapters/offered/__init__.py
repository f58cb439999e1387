"""What classifiers offer beyond their predictions."""
