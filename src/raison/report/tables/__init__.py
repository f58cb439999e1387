"""Neutral records of results, and tables of them for the terminal, HTML, Markdown, LaTeX and CSV."""
