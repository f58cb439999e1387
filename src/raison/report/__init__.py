"""What people see: explanations and results as terminal text, HTML and tables. Never imports torch."""
