"""Models of which only the answers are known: the caller's functions, and servers."""
