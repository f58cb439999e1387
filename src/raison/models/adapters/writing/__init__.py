"""Language models that write: what follows a prompt, and its statements."""
