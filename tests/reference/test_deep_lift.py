"""DeepLIFT against differences carried forwards through a written-out model, split among the tokens at every step."""

import pytest
import torch
from torch import Tensor

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import InputError, UnknownNameError
from raison.core.method import Cost
from raison.methods.deep_lift import DeepLift
from raison.models.adapters.classifier import Classifier
from raison.text.prompts import Prompt
from tests.tiny import LANGUAGE_MODELS, QUESTIONS, TAPPED, TEXTS, TINY, build, build_answering, build_language_model
from tests.toys import in_place, removed_embeddings
from tests.written_out import Differences, Parts, bert_logits, llama_logits


def load(name: str) -> Classifier:
    model, tokenizer = TINY[name]()
    return raison.load(model.double(), tokenizer)


def literal(model: Classifier, name: str, text: str, of: str, target: int, zero: bool = False) -> Tensor:
    """Scores of all tokens of one text."""
    encoding = model.encode([text], "token")
    here = model.ask(WordEmbeddings).embed(encoding)[0]
    removed = torch.zeros_like(here) if zero else removed_embeddings(model, encoding, in_place(model))[0]
    there = torch.where(encoding.scored[0, :, None], removed, here)
    tokens = torch.eye(len(here), dtype=here.dtype)
    state = Parts(here, there, [row[:, None] * (here - there) for row in tokens])
    algebra = Differences()
    if name == "bert":
        logits = bert_logits(model.core, state, algebra, encoding.type_ids[0])
    else:
        logits = llama_logits(model.core, state, algebra, len(here))
    if of == "probability":
        logits = algebra.softmax(logits)
    return torch.stack([part[target] for part in logits.parts])


@pytest.mark.parametrize("of", ["logit", "probability"])
@pytest.mark.parametrize("name", ["bert", "llama"])
def test_equals_differences_carried_forwards(name: str, of: str) -> None:
    model = load(name)
    found = raison.explain(model, list(TEXTS), "deep_lift", unit="token", of=of, target=2)
    for text, explanation in zip(TEXTS, found, strict=True):
        scored = model.encode([text], "token").scored[0]
        expected = literal(model, name, text, of, 2)[scored]
        assert expected.abs().max() > 1e-3
        # Llama's norms compute in single precision whatever the model does.
        tolerance = 1e-9 if name == "bert" else 2e-6
        assert explanation.scores == pytest.approx(expected.tolist(), abs=tolerance, rel=tolerance)


def test_zeros_as_the_baseline() -> None:
    model = load("bert")
    explanation = raison.explain(model, TEXTS[0], DeepLift("zero"), unit="token", of="logit", target=0)
    scored = model.encode([TEXTS[0]], "token").scored[0]
    expected = literal(model, "bert", TEXTS[0], "logit", 0, zero=True)[scored]
    assert explanation.scores == pytest.approx(expected.tolist(), abs=1e-9)
    assert explanation.notes["baseline"] == "zero"
    # Relative to its own baseline, which is another one than the removed text.
    assert abs(explanation.notes["completeness_gap"]) < 1e-9 < 1e-3 < abs(explanation.completeness_gap)


@pytest.mark.parametrize(
    ("name", "of"),
    [
        *((name, "probability") for name in sorted(TAPPED)),
        *(("bert", of) for of in ("logit", "log_odds", "log_probability", "margin")),
    ],
)
def test_sums_to_the_difference_on_every_family(name: str, of: str) -> None:
    model = raison.load(*TINY[name]())
    for explanation in raison.explain(model, list(TEXTS), "deep_lift", of=of):
        assert abs(explanation.value_full - explanation.value_empty) > 1e-3
        assert abs(explanation.completeness_gap) < 2e-5
        assert abs(explanation.notes["completeness_gap"]) < 2e-5


@pytest.mark.parametrize("of", ["probability", "logit", "log_odds", "log_probability", "margin"])
@pytest.mark.parametrize("family", ["bert", "t5_encoder", "modernbert"])
def test_sums_to_the_difference_of_a_label(family: str, of: str) -> None:
    model = raison.load(*build(family, problem="multi_label_classification"))
    for explanation in raison.explain(model, list(TEXTS), "deep_lift", of=of):
        assert abs(explanation.value_full - explanation.value_empty) > 1e-5
        assert abs(explanation.notes["completeness_gap"]) < 2e-5


@pytest.mark.parametrize("of", ["probability", "logit", "log_odds", "log_probability"])
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_sums_to_the_difference_of_an_answer(family: str, of: str) -> None:
    model = raison.load(*build_answering(family))
    for explanation in raison.explain(model, list(QUESTIONS), "deep_lift", of=of):
        span = abs(explanation.value_full - explanation.value_empty)
        assert abs(explanation.notes["completeness_gap"]) < 1e-5 + 1e-4 * span


def test_zeros_before_norms_that_divide_by_them_are_refused() -> None:
    model = raison.load(*build("qwen3"))
    with pytest.raises(InputError, match="baseline='removal'"):
        raison.explain(model, "A plot. It is dull. No!", DeepLift("zero"), of="logit")


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("labels", [{"good": " good", "bad": " bad"}, {"good": " a pleasure", "bad": " dull"}])
@pytest.mark.parametrize("family", LANGUAGE_MODELS)
def test_behind_a_prompt(family: str, labels: dict[str, str]) -> None:
    prompt = Prompt(name="film", task="What is it?", shot="{text} :{label}", labels=labels, shots=(("dull", "bad"),))
    model = raison.load(*build_language_model(family), prompt=prompt)
    together = raison.explain(model, list(TEXTS), "deep_lift", of="logit")
    for text, explanation in zip(TEXTS, together, strict=True):
        assert abs(explanation.value_full - explanation.value_empty) > 1e-3
        assert abs(explanation.completeness_gap) < 5e-5
        alone = raison.explain(model, text, "deep_lift", of="logit")
        assert explanation.scores == pytest.approx(alone.scores, abs=1e-5)


def test_passes_and_settings() -> None:
    model = load("bert")
    explanation = raison.explain(model, TEXTS[1], "deep_lift")
    assert (explanation.evaluations, explanation.gradients) == (2, 1)
    assert DeepLift().cost(9) == Cost(2, 1)
    with pytest.raises(UnknownNameError):
        DeepLift("masks")
