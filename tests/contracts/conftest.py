"""Every method, metric and adapter meets its contract on every tiny model, found by discovery."""

import os

import pytest

import raison
from raison.models.classifier import Classifier
from tests.tiny import TINY

TEXTS = [
    "the film is not a quiet pleasure , it is a loud one",
    "dull",
    "a dull plot , but the acting is good and the end is good",
]


FEW = ("bert", "gpt2", "llama", "t5_encoder")
"""An encoder, decoders with and without their own norm's mean, an encoder with relative positions."""
ON_FEW = (
    "test_scores_every_unit_with_a_finite_number",
    "test_model_tokenizer_and_random_state_are_untouched",
    "test_passes_are_really_those_that_the_model_made",
    "test_bfloat16_models_are_explained_too",
    "test_signed_methods_change_sign_with_the_target",
)
"""Of the methods' contract: what hardly depends on the family. All families with RAISON_ALL_FAMILIES=1."""
LIKE_OTHERS = ("electra", "mistral", "qwen3")
"""Families on which tests/integration/test_one_weight_set.py has every method, with real weights."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the least telling pairs of method and family to those who ask for all."""
    if os.environ.get("RAISON_ALL_FAMILIES"):
        return
    left = [item for item in items if _is_left(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not _is_left(item)]


def _is_left(item: pytest.Item) -> bool:
    parameters = getattr(item, "callspec", None)
    family = FEW[0] if parameters is None else parameters.params.get("tiny", FEW[0])
    if not isinstance(item, pytest.Function) or "method" not in item.fixturenames:
        return False
    return family in LIKE_OTHERS or (item.originalname in ON_FEW and family not in FEW)


@pytest.fixture(params=sorted(TINY))
def tiny(request: pytest.FixtureRequest) -> Classifier:
    """A fresh tiny model of one family behind its adapter."""
    model, tokenizer = TINY[request.param]()
    loaded = raison.load(model, tokenizer)
    assert isinstance(loaded, Classifier)
    return loaded
