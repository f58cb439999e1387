"""Many explanations as rows of a table: filtered, sorted, cut into slices, of a run's folder or of a list."""
