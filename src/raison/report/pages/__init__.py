"""Documents of a study: its page, the pages beside it, its tables in Markdown and LaTeX."""
