"""Forward passes: batches, packed trees, stored prompts, re-run layers, removal, readouts and heads."""
