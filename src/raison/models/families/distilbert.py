"""DistilBERT: absolute positions; the head reads the first token ([CLS])."""

from raison.models.families import Family

FAMILY = Family(model_types=("distilbert",), pools="first")
