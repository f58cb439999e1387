"""Tests of explanations: randomised parameters, attacks, harmless changes."""
