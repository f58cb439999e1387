"""BERT: absolute positions; the pooler reads the first token ([CLS])."""

from raison.models.families import Family

FAMILY = Family(model_types=("bert",), pools="first")
