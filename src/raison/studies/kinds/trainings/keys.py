"""The keys of a study of trainings and what their values may be."""

from raison.studies import schema as shape
from raison.studies.schema import Key, Keys

TASK_KINDS = ("classification", "spans")
PARTS = ("train", "dev", "test")
_COMPREHENSIVENESS = ("aopc_comprehensiveness", "comprehensiveness")
_SUFFICIENCY = ("aopc_sufficiency", "sufficiency")
CRITERIA = {
    "sim": ("simulatability",),
    "comp": _COMPREHENSIVENESS,
    "suff": _SUFFICIENCY,
    "suff_mae": _SUFFICIENCY,
    "suff_kl": _SUFFICIENCY,
    "cons": ("consistency",),
    "clust": ("consistency",),
}
"""Criteria, and the metrics that stand for them unless a study says otherwise."""

STUDY: Keys = {
    "schema": Key(shape.WHOLE, True),
    "kind": Key(shape.TEXT, True),
    "title": Key(shape.TEXT, True),
    "source": Key(shape.TEXT),
    "reference": Key(shape.TEXT),
    "size": Key(shape.SIZE),
    "about": Key(shape.TEXT),
    "seeds": Key(shape.SEEDS),
    "metrics": Key(shape.TEXTS, True),
    "keep": Key(shape.FLAG),
    "settings": Key(shape.TABLE),
    "tasks": Key(shape.TABLE, True),
    "plain": Key(shape.TABLE),
    "training": Key(shape.TABLE),
    "trainings": Key(shape.TABLES, True),
    "posthoc": Key(shape.TABLES),
    "controls": Key(shape.TEXTS),
    "gains": Key(shape.TABLE),
    "claims": Key(shape.TABLES),
}
TASK: Keys = {
    "base": Key(shape.TEXT, True),
    "kind": Key(shape.TEXT),
    "labels": Key(shape.TEXTS),
    "train": Key(shape.TABLE, True),
    "dev": Key(shape.TABLE),
    "test": Key(shape.TABLE, True),
    "also": Key(shape.TEXTS),
    "even_at_chance": Key(shape.FLAG),
}
POSTHOC: Keys = {"methods": Key(shape.TEXTS, True), "tasks": Key(shape.TEXTS)}
CLAIM: Keys = {key: value for key, value in shape.CLAIM.items() if key != "run"} | {"task": Key(shape.TEXT)}
ROW: Keys = {
    "name": Key(shape.TEXT),
    "tasks": Key(shape.TEXTS),
    "grid": Key(shape.TABLE),
}
