"""How each training is done: what a caller may set."""
