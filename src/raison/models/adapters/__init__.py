"""One way of predicting each, behind the one door to a model, and what is asked of adapters alone."""
