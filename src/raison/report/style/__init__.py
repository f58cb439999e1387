"""Shared by all views: colours, numbers and phrases, HTML templates, text that is safe in a terminal."""
