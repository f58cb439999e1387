"""lime solves the same regression on the same samples, and its sampling has the same law.

The results are equal only with its feature selection off (it keeps ten words), with bow=False (it removes all
occurrences of a word at once) and on the same draws: its random generator is another.
"""

import numpy as np
import pytest
import torch
from sklearn.metrics import pairwise_distances

import raison
from raison.core.problem import Problem
from raison.methods.lime import Lime
from tests.functions import CLASSES, shares
from tests.toys import Product, generators, make_problem

lime_base = pytest.importorskip("lime.lime_base")
lime_text = pytest.importorskip("lime.lime_text")
pytestmark = pytest.mark.peer

TEXT = "good film not terrible fine um bad"


def kernel(distance):
    return np.sqrt(np.exp(-(distance**2) / 25.0**2))


def test_same_regression_on_the_same_samples(monkeypatch):
    problem = make_problem(Product(), [TEXT], of="probability")
    asked = []
    values = Problem.values

    def recorded(problem, keeps):
        found = values(problem, keeps)
        asked.append((keeps[0].numpy().astype(float), found[0].numpy()))
        return found

    monkeypatch.setattr(Problem, "values", recorded)
    scores = Lime().attribute(problem, generators(1))[0]
    [(data, labels)] = asked
    distances = pairwise_distances(data, data[:1], metric="cosine").ravel() * 100
    base = lime_base.LimeBase(kernel, random_state=np.random.RandomState(0))
    _, pairs, fit, _ = base.explain_instance_with_data(data, labels[:, None], distances, 0, 7, feature_selection="none")
    np.testing.assert_allclose(scores, [weight for _, weight in sorted(pairs)], atol=1e-10)
    assert problem.ledger.notes[0]["r_squared"] == pytest.approx(fit, abs=1e-10)


def test_same_expectation_end_to_end():
    problem = make_problem(Product(), [TEXT], of="probability")
    words = TEXT.split()

    def classify(texts):
        # Words that lime removes read UNKWORDZ.
        keeps = torch.tensor([[word in text.split() for word in words] for text in texts])
        return problem.model.masked_logits(problem.encoding, [keeps], "mask")[0].softmax(-1).numpy()

    explainer = lime_text.LimeTextExplainer(bow=False, feature_selection="none", random_state=0)
    found = explainer.explain_instance(TEXT, classify, labels=(1,), num_features=7, num_samples=10_000)
    scores = Lime(samples=10_000).attribute(problem, generators(1))[0]
    # Four standard errors: one run's spread at 4,000 samples is 0.008.
    np.testing.assert_allclose(scores, [weight for _, weight in sorted(found.local_exp[1])], atol=0.025)


def test_same_expectation_on_a_function_of_texts():
    text = "good film not bad quiet"
    explainer = lime_text.LimeTextExplainer(bow=False, feature_selection="none", random_state=0)
    found = explainer.explain_instance(text, shares, labels=(1,), num_features=5, num_samples=10_000)
    model = raison.load(shares, classes=CLASSES)
    # lime puts UNKWORDZ in a word's place, which weighs nothing either.
    scores = raison.explain(model, text, "lime(samples=10000)", target="positive", removal="[UNK]").scores
    np.testing.assert_allclose(scores, [weight for _, weight in sorted(found.local_exp[1])], atol=0.025)
