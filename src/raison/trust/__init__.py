"""Can an explanation be trusted: randomised parameters, attacks, harmless changes."""
