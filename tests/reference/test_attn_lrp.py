"""AttnLRP against a written-out model whose products, activations and norms follow the rules literally.

The authors' own library would compute the same scores of models that it patches; it is not among the test dependencies.
"""

import pytest
import torch
from torch import Tensor

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.method import Cost
from raison.methods.attn_lrp import AttnLrp
from raison.models.adapters.classifier import Classifier
from tests.tiny import TEXTS, TINY
from tests.written_out import Graph, bert_logits, llama_logits

RULES = Graph(softmax_constant=False, identity=True, gates="shared", halved=True)


def load(name: str) -> Classifier:
    model, tokenizer = TINY[name]()
    return raison.load(model.double(), tokenizer)


def literal(model: Classifier, name: str, text: str, target: int, graph: Graph = RULES) -> Tensor:
    encoding = model.encode([text], "token")
    embeds = model.ask(WordEmbeddings).embed(encoding)[0].requires_grad_()
    if name == "bert":
        logits = bert_logits(model.core, embeds, graph, encoding.type_ids[0])
    else:
        logits = llama_logits(model.core, embeds, graph, len(embeds))
    (gradient,) = torch.autograd.grad(logits[target], embeds)
    return (embeds * gradient).detach().sum(-1)[encoding.scored[0]]


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_equals_the_written_out_model_with_the_rules(name: str) -> None:
    model = load(name)
    found = raison.explain(model, list(TEXTS), AttnLrp(), unit="token", of="logit", target=2)
    for text, explanation in zip(TEXTS, found, strict=True):
        expected = literal(model, name, text, 2)
        assert expected.abs().max() > 1e-3
        # Llama's norms compute in single precision whatever the model does.
        tolerance = 1e-9 if name == "bert" else 2e-6
        assert explanation.scores == pytest.approx(expected.tolist(), abs=tolerance, rel=tolerance)


def test_every_rule_counts() -> None:
    model = load("llama")
    scores = literal(model, "llama", TEXTS[0], 2)
    for other in (
        Graph(True, True, "shared", True),
        Graph(False, False, "shared", True),
        Graph(False, True, "gradient", True),
        Graph(False, True, "shared", False),
    ):
        assert (literal(model, "llama", TEXTS[0], 2, other) - scores).abs().max() > 1e-3


def test_a_contrast_is_the_difference_of_two_explanations() -> None:
    model = load("gpt2")
    this, that, contrast = (
        torch.tensor(raison.explain(model, TEXTS[0], "attn_lrp", of="logit", target=target).scores, dtype=torch.float64)
        for target in (2, 0, (2, 0))
    )
    torch.testing.assert_close(contrast, this - that, rtol=0, atol=1e-9)


def test_passes() -> None:
    explanation = raison.explain(load("bert"), TEXTS[1], "attn_lrp")
    assert (explanation.evaluations, explanation.gradients) == (1, 1)
    assert AttnLrp().cost(9) == Cost(1, 1)
