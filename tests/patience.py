"""How long a test waits for something before it fails."""

PATIENCE = 180.0
"""Seconds. A loaded machine can be ten times slower than an idle one; a test that passes does not wait any longer."""
