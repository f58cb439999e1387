"""Every method, metric and adapter meets its contract on every tiny model, found by discovery."""

from collections.abc import Iterator

import pytest

import raison
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from tests.conftest import ALL
from tests.reused import reused
from tests.tiny import LANGUAGE_MODELS, TINY

TEXTS = [
    "the film is not a quiet pleasure , it is a loud one",
    "dull",
    "a dull plot , but the acting is good and the end is good",
]


FEW = ("bert", "gpt2", "llama", "t5_encoder")
"""An encoder, decoders with and without their own norm's mean, an encoder with relative positions."""
LIKE_OTHERS = ("electra", "mistral", "qwen3")
"""Families on which tests/integration/test_one_weight_set.py has every method, with real weights."""
OTHERS = tuple(family for family in sorted(TINY) if family not in FEW + LIKE_OTHERS)
IN_TURN = (
    "test_scores_every_unit_with_a_finite_number",
    "test_model_tokenizer_and_random_state_are_untouched",
    "test_passes_are_really_those_that_the_model_made",
    "test_bfloat16_models_are_explained_too",
    "test_out_of_memory_changes_no_score",
    "test_signed_methods_change_sign_with_the_target",
    "test_no_score_is_below_zero_unless_the_method_is_signed",
    "test_every_tiny_model_gives_finite_values",
    "test_values_do_not_depend_on_the_batch",
    "test_everything_it_measures_was_announced",
)
"""Of the contracts of methods and metrics: what hardly depends on the family."""
OF_PARTS = ("test_a_method_takes_parts_as_it_takes_words", "test_a_method_scores_parts_with_context_around_them")
"""What depends on it even less: each method on one of the few families."""
CAUSAL_ONLY = ("mp_pi", "sp_pi")
"""Methods that no family but decoders' has what they need for: their few are those."""
OF_ANSWERS = ("test_scores_every_unit", "test_untouched", "test_bfloat16")
"""The same on a model that answers questions: each method has one of them."""
CLAIMS_OF_ANSWERS = "test_claims"
"""The main test there: of methods that need nothing of a model but its answers to masked texts, one in three has it."""
OF_EVERY_FAMILY = ("test_selfcheck_passes_and_confirms_the_capabilities",)
"""Contracts without a method that families which are like others have, too; of the rest each has one in three."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Pairs of method, or metric, and family that tell most; all of them with RAISON_ALL_FAMILIES=1.

    A method's main tests run on one of the few families and one other, those in turn on one, of the few and of the
    others by turns, those of parts on one of the few. Which one moves on from method to method and from test to test,
    so that a method meets most families in some test, and every family some method. Of a test of families alone,
    those that are like others take one each by turns.
    """
    if ALL:
        return
    turns: dict[str, int] = {}
    tests: dict[str, int] = {}
    left = [item for item in items if _is_left(item, turns, tests)]
    if left:
        config.hook.pytest_deselected(items=left)
        dropped = set(left)
        items[:] = [item for item in items if item not in dropped]


def _is_left(item: pytest.Item, turns: dict[str, int], tests: dict[str, int]) -> bool:
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return False
    parameters = item.callspec.params
    family, judged = parameters.get("tiny"), parameters.get("method", parameters.get("metric"))
    name = item.originalname
    if judged is None:
        if family not in LIKE_OTHERS or name in OF_EVERY_FAMILY:
            return False
        return tests.setdefault(name, len(tests)) % len(LIKE_OTHERS) != LIKE_OTHERS.index(family)
    turn = turns.setdefault(str(judged), len(turns))
    if name == CLAIMS_OF_ANSWERS and not CATALOGUE.get(str(judged)).needs:
        return turn % 3 > 0
    if name in OF_ANSWERS:
        return turn % len(OF_ANSWERS) != OF_ANSWERS.index(name)
    if family is None:
        return False
    few = tuple(one for one in FEW if one in LANGUAGE_MODELS) if judged in CAUSAL_ONLY else FEW
    if name in IN_TURN:
        turn += IN_TURN.index(name)
        kind = (few, OTHERS)[turn % 2]
        return family != kind[turn // 2 % len(kind)]
    if name in OF_PARTS:
        return family != few[(turn + OF_PARTS.index(name)) % len(few)]
    return family not in (few[turn % len(few)], OTHERS[turn % len(OTHERS)])


@pytest.fixture(params=sorted(TINY))
def tiny(request: pytest.FixtureRequest) -> Iterator[Classifier]:
    """A tiny model of one family behind its adapter: see tests/reused.py."""
    family = request.param
    yield from reused(request, family, lambda: raison.load(*TINY[family]()))
