"""The settings of calls: what may stand for a list."""

import numpy as np
import pandas as pd
import pytest
import torch

import raison
from raison.core.model import LanguageModel
from raison.explaining.settings import Settings, target_of
from tests.tiny import LABELS, TINY

TEXTS = ["a dull plot", "not good"]


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    loaded = raison.load(*TINY["bert"]())
    assert isinstance(loaded, LanguageModel)
    return loaded


@pytest.mark.parametrize("wrap", [np.array, pd.Series, pd.Categorical], ids=["array", "column", "categories"])
def test_targets_may_be_a_column(model: LanguageModel, wrap: object) -> None:
    given = [LABELS[1], LABELS[0]]
    wanted, found = (raison.explain(model, TEXTS, "occlusion", target=target) for target in (given, wrap(given)))
    assert [one.scores for one in found] == [one.scores for one in wanted]
    listed, column = (
        raison.compare(model, TEXTS, "occlusion", "comprehensiveness", target=target, progress=False)
        for target in (given, wrap(given))
    )
    assert column["occlusion"]["comprehensiveness"].values == listed["occlusion"]["comprehensiveness"].values


@pytest.mark.parametrize("wrap", [np.array, pd.Series, torch.tensor], ids=["array", "column", "tensor"])
def test_numbers_may_be_a_column(wrap: object) -> None:
    assert Settings(target=wrap([1, 0])).target == [1, 0]
    assert Settings(target=np.int64(1)).target == 1


@pytest.mark.parametrize(
    ("typed", "target"),
    [
        ("3", 3),
        ("1,0", (1, 0)),
        ("\u00b2", "\u00b2"),
        ("0, 4, PER", (0, 4, "PER")),
        ('"5"', "5"),
        ('"5","1"', ("5", "1")),
        ('"yes"', '"yes"'),
    ],
)
def test_a_typed_target_is_a_number_only_in_digits(typed: str, target: object) -> None:
    assert target_of(typed) == target
