"""Whoever waits for a method hears of its passes and can end it between two of them: every file of the catalogue."""

from functools import cache

import pytest

import raison
from raison.explaining.attribution import unfit
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from raison.models.loading.load import load
from raison.progress import hearing
from tests.contracts.test_methods import SHORT_TEXTS, SHORTER
from tests.tiny import build


class EnoughError(Exception):
    """Raised by a listener that has heard enough."""


@cache
def built(family: str) -> Classifier:
    loaded = load(*build(family))
    assert isinstance(loaded, Classifier)
    return loaded


@pytest.mark.parametrize("family", ["bert", "gpt2"])
@pytest.mark.parametrize("name", CATALOGUE.names)
def test_a_listener_hears_of_every_pass_and_can_end_the_work(family: str, name: str) -> None:
    model, method = built(family), CATALOGUE.create(SHORTER.get(name, name))
    if why := unfit(model, method):
        pytest.skip(f"{family}: {why}")
    # The first use of a model includes checks of its own.
    raison.explain(model, SHORT_TEXTS[-1], method, progress=False)
    steps: list[int] = []
    with hearing(steps.append):
        found = raison.explain(model, SHORT_TEXTS[-1], method, progress=False)
    assert sum(steps) >= found.evaluations
    left = len(steps)

    def until_the_last(_count: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise EnoughError

    with hearing(until_the_last), pytest.raises(EnoughError):
        raison.explain(model, SHORT_TEXTS[-1], method, progress=False)
