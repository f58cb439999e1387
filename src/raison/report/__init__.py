"""Views of explanations and results: terminal text, HTML and tables. Never imports torch."""
