"""Models that explain themselves while they learn: their pass, its criteria's view, the student."""
