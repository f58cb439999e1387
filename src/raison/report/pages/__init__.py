"""Documents of a study: its page, further pages, its tables in Markdown and LaTeX."""
