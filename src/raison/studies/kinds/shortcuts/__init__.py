"""Does the finder of shortcuts find a word that was planted, and how often does it name one by chance."""
