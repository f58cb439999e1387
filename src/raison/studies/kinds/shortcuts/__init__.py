"""Does the shortcut finder find a planted word, and how often does it report one by chance?"""
