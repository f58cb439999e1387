"""Parts that the caller names: every method and every metric takes them as it takes words."""

import re

import numpy as np
import pytest
import torch

import raison
from raison.core.inputs.parts import parted
from raison.core.method import Method
from raison.core.metric import GroupMetric, Metric
from raison.core.results.explanation import Explanation
from raison.methods import CATALOGUE
from raison.metrics import CATALOGUE as METRICS
from raison.models.adapters.classifier import Classifier
from raison.models.passes.removal import masked_rows
from tests.contracts.test_methods import CLOSE, SHORT_TEXTS, SHORTER, able, check_completeness
from tests.contracts.test_metrics import NEEDS_WEIGHTS, SETTINGS, marked
from tests.tiny import TINY

__all__ = ["able"]

PARTS = {"subject": (2, 11), "verb": (16, 20)}
"""Of SHORT_TEXTS[2]: the rest, with a token before, between and none after, is context."""


@pytest.fixture(params=CATALOGUE.names)
def method(request: pytest.FixtureRequest) -> Method:
    return CATALOGUE.create(SHORTER.get(request.param, request.param))


@pytest.fixture
def texts() -> list[str]:
    return SHORT_TEXTS[1:]


def words_of(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def test_a_method_takes_parts_as_it_takes_words(able: Classifier, method: Method, texts: list[str]) -> None:
    words = raison.explain(able, texts, method, of="logit", seed=3)
    parts = raison.explain(able, texts, method, of="logit", seed=3, units=[words_of(text) for text in texts])
    for word, part in zip(words, parts, strict=True):
        assert (part.unit, word.units) == ("part", part.units)
        if method.maps == 1 and "self_explanation" not in word.method:
            np.testing.assert_allclose(part.scores, word.scores, **CLOSE)


def test_a_method_scores_parts_with_context_around_them(able: Classifier, method: Method) -> None:
    text = "the plot is good and long"
    found = raison.explain(able, text, method, of="logit", units={"subject": (4, 8), "verb": (9, 16)})
    assert [(unit.name, unit.text) for unit in found.units] == [("subject", "plot"), ("verb", "is good")]
    assert np.isfinite(found.scores).all()
    check_completeness(method, found)
    assert raison.Explanation.from_json(found.to_json()) == found


@pytest.mark.parametrize("family", sorted(TINY))
def test_context_is_never_removed(family: str) -> None:
    """Whatever is removed, the tokens outside the parts stay, in their order."""
    model = raison.load(*TINY[family]())
    assert isinstance(model, Classifier)
    encoding = model.encode([parted("a dull plot but the acting is good", [(2, 11), (20, 26)])], "part")
    length = encoding.lengths[0]
    context = encoding.input_ids[0, :length][encoding.unit_ids[0, :length] < 0].tolist()
    assert len(context) >= 4
    for removal in model.removals:
        batch = masked_rows(encoding, 0, torch.zeros(1, 2, dtype=torch.bool), model.removing.remover(removal))
        left = iter(batch.ids[0, : int(batch.lengths[0])].tolist())
        assert all(token in left for token in context)


@pytest.fixture(scope="module")
def explained() -> tuple[Classifier, list[list[Explanation]]]:
    """A model, and what occlusion says of each word, of parts that are the words, and of parts with others around."""
    model = raison.load(*TINY["bert"]())
    texts = ["it is not a dull plot , and it is good", "the film is not a quiet pleasure", "a quiet film , but good"]
    partly = [{"one": (0, 2), "two": (3, 16)}] * 3
    by_units = (None, [words_of(text) for text in texts], partly)
    return model, [raison.explain(model, texts, "occlusion", units=units) for units in by_units]


@pytest.mark.parametrize("name", [name for name in METRICS.names if name not in NEEDS_WEIGHTS])
def test_a_metric_takes_parts_as_it_takes_words(
    name: str, explained: tuple[Classifier, list[list[Explanation]]]
) -> None:
    metric = METRICS.create(SETTINGS.get(name, name))
    assert isinstance(metric, Metric | GroupMetric)
    model, (words, parts, partly) = explained
    rationales = [marked(e) for e in words]
    one, other = (raison.evaluate(model, found, metric, rationales=rationales) for found in (words, parts))
    # A neutral sentence that an edit adds is a word, and no part of the caller's.
    if name != "harmless_change":
        np.testing.assert_allclose(other.metrics[0].values, one.metrics[0].values, atol=1e-5)
    raison.evaluate(model, partly, metric, rationales=[marked(e) for e in partly])
