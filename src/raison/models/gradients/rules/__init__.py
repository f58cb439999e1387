"""Modified backward passes; forward values are unchanged."""
