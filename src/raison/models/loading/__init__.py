"""From a name or a folder to a model: downloads, checks, conversion, demo models, models made from scratch."""
