"""ELECTRA: absolute positions; the head reads the first token ([CLS])."""

from dataclasses import replace

from raison.models.families import Family, bert

PARTS = replace(bert.PARTS, head=("classifier.dense", "classifier.activation", "classifier.out_proj"))
FAMILY = Family(model_types=("electra",), pools="first", parts=PARTS)
