"""All knowledge of transformers: adapters, the attention tap, batching, removal, family facts, the demo models."""
