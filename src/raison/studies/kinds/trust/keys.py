"""The keys of a study of trust and what their values may be."""

from raison.studies.kinds.trust.claims import ALL
from raison.studies.schema import COUNT, FLAG, SIZE, TABLE, TABLES, TEXT, TEXTS, THAN, WHOLE, Key, Keys, Kind
from raison.trust.results import KIND

_KIND = Kind(f'"{KIND}"', lambda value: value == KIND)
_BLOCKS = Kind(f'a whole number from 1 on, or "{ALL}"', lambda value: value == ALL or COUNT.fits(value))
_NUMBER = Kind("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool))
_TABLE_OR_NO = Kind("a table, or false", lambda value: value is False or isinstance(value, dict))

STUDY: Keys = {
    "schema": Key(WHOLE, True),
    "kind": Key(_KIND, True),
    "title": Key(TEXT, True),
    "source": Key(TEXT),
    "reference": Key(TEXT),
    "size": Key(SIZE),
    "about": Key(TEXT),
    "methods": Key(TEXTS, True),
    "settings": Key(TABLE),
    "models": Key(TABLE, True),
    "data": Key(TABLE, True),
    "runs": Key(TABLES),
    "randomisation": Key(TABLE),
    "attacks": Key(TABLE),
    "figure": Key(TABLE),
    "claims": Key(TABLES),
}
SETTINGS: Keys = {
    "unit": Key(TEXT),
    "of": Key(TEXT),
    "removal": Key(TEXT),
    "seed": Key(WHOLE),
    "truncate": Key(FLAG),
}
RANDOMISATION: Keys = {"texts": Key(COUNT)}
"""Beside the settings of raison.trust.randomisation.Randomisation."""
ATTACKS: Keys = {
    "texts": Key(COUNT),
    "objectives": Key(TEXTS),
    "substitution": Key(_TABLE_OR_NO),
}
"""Beside the settings of raison.trust.attacks.EmbeddingAttack."""
CLAIM: Keys = {
    "says": Key(TEXT, True),
    "measure": Key(TEXT, True),
    "above": Key(TEXT),
    "below": Key(TEXT),
    "than": Key(THAN),
    "by": Key(_NUMBER),
    "order": Key(TEXT),
    "blocks": Key(_BLOCKS),
    "attack": Key(TEXT),
    "objective": Key(TEXT),
    "than_attack": Key(TEXT),
    "than_objective": Key(TEXT),
    "run": Key(TEXT),
}
