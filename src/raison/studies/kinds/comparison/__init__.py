"""Methods side by side, on models that exist."""
