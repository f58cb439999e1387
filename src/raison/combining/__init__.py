"""Shared code of methods that combine other methods, and the evidence behind auto."""
