"""Every method, metric and adapter meets its contract on every tiny model, found by discovery."""

import pytest

import raison
from raison.models.classifier import Classifier
from tests.tiny import TINY

TEXTS = [
    "the film is not a quiet pleasure , it is a loud one",
    "dull",
    "a dull plot , but the acting is good and the end is good",
]


@pytest.fixture(params=sorted(TINY))
def tiny(request: pytest.FixtureRequest) -> Classifier:
    """A fresh tiny model of one family behind its adapter."""
    model, tokenizer = TINY[request.param]()
    loaded = raison.load(model, tokenizer)
    assert isinstance(loaded, Classifier)
    return loaded
