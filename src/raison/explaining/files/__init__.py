"""Explains whole files: reads them in a stream, and writes rows in shards that survive kills."""
