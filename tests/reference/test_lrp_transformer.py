"""LRP for transformers against a written-out model with literal detachments, and where relevance must be conserved."""

import pytest
import torch
from torch import Tensor

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import UnknownNameError
from raison.core.method import Cost, Method
from raison.core.problem import Ledger, Problem
from raison.explaining.batch import prepare
from raison.explaining.settings import Settings
from raison.methods.input_x_gradient import InputXGradient
from raison.methods.lrp_transformer import LrpTransformer
from raison.models.adapters.classifier import Classifier
from tests.tiny import TEXTS, TINY
from tests.toys import generators
from tests.written_out import Graph, bert_logits, llama_logits


def load(name: str) -> Classifier:
    model, tokenizer = TINY[name]()
    return raison.load(model.double(), tokenizer)


def literal(model: Classifier, name: str, text: str, graph: Graph, target: int) -> Tensor:
    """Embeddings times gradients of all tokens of one text."""
    encoding = model.encode([text], "token")
    embeds = model.ask(WordEmbeddings).embed(encoding)[0].requires_grad_()
    if name == "bert":
        logits = bert_logits(model.core, embeds, graph, encoding.type_ids[0])
    else:
        logits = llama_logits(model.core, embeds, graph, len(embeds))
    (gradient,) = torch.autograd.grad(logits[target], embeds)
    return (embeds * gradient).detach()


@pytest.mark.parametrize("activations", ["gradient", "identity"])
@pytest.mark.parametrize("name", ["bert", "llama"])
def test_equals_the_written_out_model_with_constants(name: str, activations: str) -> None:
    identity = activations == "identity"
    graph = Graph(True, identity, "constant" if identity else "gradient", halved=False)
    model = load(name)
    method = LrpTransformer(activations)
    found = raison.explain(model, list(TEXTS), method, unit="token", of="logit", target=2)
    for text, explanation in zip(TEXTS, found, strict=True):
        scored = model.encode([text], "token").scored[0]
        expected = literal(model, name, text, graph, 2).sum(-1)[scored]
        assert expected.abs().max() > 1e-3
        # Llama's norms compute in single precision whatever the model does.
        tolerance = 1e-9 if name == "bert" else 2e-6
        assert explanation.scores == pytest.approx(expected.tolist(), abs=tolerance, rel=tolerance)


def test_the_norm_is_that_of_the_products() -> None:
    model = load("bert")
    method = LrpTransformer(features="norm")
    explanation = raison.explain(model, TEXTS[0], method, unit="token", of="logit", target=2)
    scored = model.encode([TEXTS[0]], "token").scored[0]
    expected = literal(model, "bert", TEXTS[0], Graph(True, False, "gradient", halved=False), 2).norm(dim=-1)
    assert explanation.scores == pytest.approx(expected[scored].tolist(), abs=1e-9)


def conserved(model: Classifier, method: Method) -> None:
    """All tokens' scores sum to the logit."""
    batch = prepare(model, list(TEXTS), Settings(of="logit"))
    ledger = Ledger.empty(len(TEXTS))
    problem = Problem(model, batch.encoding, batch.target, batch.removal, ledger, batch.evaluations)
    sums = method.attribute(problem, generators(len(TEXTS))).sum(1)
    logits = batch.full.double().gather(1, batch.target.index[:, None])[:, 0]
    assert logits.abs().min() > 1e-2
    torch.testing.assert_close(sums, logits, rtol=0, atol=1e-5)


def test_attention_alone_conserves_relevance() -> None:
    # The feed-forward layers give nothing: what is left is attention, RMS norms and the head, all without biases.
    model = load("llama")
    with torch.no_grad():
        for layer in model.core.model.layers:
            layer.mlp.down_proj.weight.zero_()
    conserved(model, LrpTransformer())


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen3"])
def test_models_without_biases_conserve_relevance_with_the_identity_rule(name: str) -> None:
    conserved(load(name), LrpTransformer("identity"))


def test_plain_gradients_do_not_conserve() -> None:
    model = load("llama")
    with pytest.raises(AssertionError, match="close"):
        conserved(model, InputXGradient())


def test_passes_and_settings() -> None:
    explanation = raison.explain(load("bert"), TEXTS[1], "lrp_transformer")
    assert (explanation.evaluations, explanation.gradients) == (1, 1)
    assert LrpTransformer().cost(9) == Cost(1, 1)
    for settings in ({"activations": "identities"}, {"features": "norms"}):
        with pytest.raises(UnknownNameError):
            LrpTransformer(**settings)
