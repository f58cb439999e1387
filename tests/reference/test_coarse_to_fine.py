"""coarse_to_fine against the halving written out as a recursion over sorted lists of parts."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.methods import CATALOGUE, CoarseToFine
from tests.tiny import TINY

TEXTS = ("the plot is thin but the acting is a quiet pleasure and the end is good for all", "so dull", "good")


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return raison.load(*TINY["bert"]())


def value_of(model: LanguageModel, text: str, target: int) -> tuple[int, Callable[[set[int]], float]]:
    """The number of words, and the logit when only some of them are kept."""
    encoding = model.encode([text], "word")
    [units] = encoding.unit_counts

    def value(kept: set[int]) -> float:
        keep = torch.tensor([[unit in kept for unit in range(units)]])
        return float(model.masked_logits(encoding, [keep], model.removals[0])[0][0, target])

    return units, value


def literal(units: int, value: Callable[[set[int]], float], samples: int) -> list[float]:
    """All parts in a list; the most important of several units are replaced by their halves, an eighth at a time."""
    everything = set(range(units))

    def effect(part: list[int]) -> float:
        inside = set(part)
        return (value(everything) - value(everything - inside) + value(inside) - value(set())) / 2

    parts = [(value(everything) - value(set()), list(range(units)))]
    left = min((samples - 2) // 4, units - 1)
    at_once = max(1, left // 8)
    while left:
        halved = sorted((part for part in parts if len(part[1]) > 1), key=lambda part: -abs(part[0]))[
            : min(left, at_once)
        ]
        left -= len(halved)
        for _, part in halved:
            parts = [one for one in parts if one[1] != part]
            for half in (part[: len(part) // 2], part[len(part) // 2 :]):
                parts.append((effect(half), half))
    return [next(e / len(part) for e, part in parts if unit in part) for unit in range(units)]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("samples", [2, 6, 13, 30, 50, 100])
def test_the_formula(model: LanguageModel, samples: int) -> None:
    found = raison.explain(model, TEXTS, f"coarse_to_fine(samples={samples})", target=1, of="logit")
    for text, e in zip(TEXTS, found, strict=True):
        units, value = value_of(model, text, 1)
        assert e.scores == pytest.approx(literal(units, value, samples), abs=1e-5)
        assert e.evaluations <= min(samples, 4 * units - 2)


def test_with_enough_passes_every_unit_is_taken_away_and_put_in_alone(model: LanguageModel) -> None:
    text = TEXTS[0]
    units, value = value_of(model, text, 1)
    everything = set(range(units))
    expected = [
        (value(everything) - value(everything - {unit}) + value({unit}) - value(set())) / 2 for unit in everything
    ]
    method = CoarseToFine(samples=4 * units - 2)
    assert raison.explain(model, text, method, target=1, of="logit").scores == pytest.approx(expected, abs=1e-5)


def test_two_passes_tell_nothing_of_the_words(model: LanguageModel) -> None:
    scores = raison.explain(model, TEXTS[0], "coarse_to_fine(samples=2)").scores
    assert np.ptp(scores) == 0


def test_a_budget_counts_the_ends() -> None:
    with pytest.raises(InputError, match="samples of coarse_to_fine cannot be 1: give a whole number of at least 2"):
        CATALOGUE.create("coarse_to_fine(samples=1)")
