"""Models that answer questions: the contract of their adapter, and that of every method on one of them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForQuestionAnswering

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, LoadError, TextTooLongError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.method import Method, Property
from raison.core.targets.answer import Answer
from raison.core.targets.target import Target
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.places.spans import answer_tokens, inside_window, span_answers
from raison.models.loading.pretrained import read_whole
from raison.models.loading.ready_made import zoo
from raison.models.passes.outputs.heads import LONGEST_ANSWER, answer_logits
from tests.contracts import test_adapter as adapter_contract
from tests.contracts import test_methods as method_contract
from tests.reused import reused
from tests.tiny import ANSWERING, LANGUAGE_MODELS, QUESTIONS, build, build_answering, build_language_model

CLOSE = {"atol": 2e-5, "rtol": 1e-4}


@pytest.fixture(params=ANSWERING)
def answering(request: pytest.FixtureRequest) -> Iterator[Classifier]:
    """A tiny model of one family behind its adapter: see tests/reused.py."""
    yield from reused(request, ("answering", request.param), lambda: raison.load(*build_answering(request.param)))


@pytest.fixture
def tiny(request: pytest.FixtureRequest) -> Iterator[Classifier]:
    """What the contract of methods runs on."""
    yield from reused(request, ("answering", "bert"), lambda: raison.load(*build_answering("bert")))


@pytest.fixture(params=CATALOGUE.names)
def method(request: pytest.FixtureRequest) -> Method:
    """Every method; one that needs an explainer finds one that nobody trained."""
    return CATALOGUE.create(method_contract.SHORTER.get(request.param, request.param))


PAIRS = [
    ("who told a story ?", "the old sailor told a quiet story"),
    ("what ?", "a dull plot"),
    ("love it ?", "nobody believed"),
]
SHORT_QUESTIONS = [("who ?", "a dull plot"), ("what ?", "dull"), ("who ?", "the end")]
"""For methods whose passes grow fast with a text's length."""


@pytest.fixture
def texts(method: Method) -> list[tuple[str, str]]:
    """Three pairs of different lengths."""
    many = method.cost(len(" ".join(QUESTIONS[0]).split())).forwards > method_contract.MANY
    return SHORT_QUESTIONS if many else PAIRS


@pytest.fixture
def brief() -> list[tuple[str, str]]:
    return SHORT_QUESTIONS[:2]


@pytest.fixture(autouse=True)
def questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contracts that are shared with classifiers read pairs here."""
    monkeypatch.setattr(method_contract, "TEXTS", QUESTIONS)
    monkeypatch.setattr(adapter_contract, "TEXTS", QUESTIONS)


# The same contracts as those of classifiers, on other texts.
able, half = method_contract.able, method_contract.half
test_scores_every_unit = method_contract.test_scores_every_unit_with_a_finite_number
test_untouched = method_contract.test_model_tokenizer_and_random_state_are_untouched
test_claims = method_contract.test_batches_seeds_passes_and_claims
test_bfloat16 = method_contract.test_bfloat16_models_are_explained_too
test_embeddings = adapter_contract.test_embeddings_in_place_of_ids_change_nothing
test_logits_at = adapter_contract.test_logits_at_are_the_logits_from_these_embeddings
test_given_embeddings = adapter_contract.test_given_embeddings_are_all_that_the_model_reads
test_shifts = adapter_contract.test_given_embeddings_are_not_shifted_again


def test_signed_methods_change_sign_with_the_target(
    able: Classifier, method: Method, brief: list[tuple[str, str]]
) -> None:
    if Property.SIGNED not in method.properties or Property.RANDOM in method.properties:
        pytest.skip("unsigned or random")
    this, that = (raison.explain(able, brief[0], method, target=pair, of="logit") for pair in ((0, 1), (1, 0)))
    assert max(map(abs, this.scores)) > 0
    assert this.scores == pytest.approx([-score for score in that.scores], rel=2e-3, abs=2e-4)


def literal(model: Classifier, encoding: Encoding, text: int, span: tuple[int, int]) -> tuple[float, float, float]:
    """Logits and probability of an answer by a loop over all pairs of the context's tokens, from the plain model."""
    question, context = encoding.texts[text]
    given = model.tokenizer(question, context, return_tensors="pt")
    with torch.no_grad():
        output = model.model.double()(**given)
    own = [place for place, segment in enumerate(given.sequence_ids(0)) if segment == 1]
    start, end = output.start_logits[0], output.end_logits[0]
    pairs = {(i, j): (start[i] + end[j]).item() for i, j in product(own, own)}
    others = torch.logsumexp(torch.tensor([v for pair, v in pairs.items() if pair != span], dtype=torch.float64), 0)
    shares = [logits[own].softmax(0)[own.index(place)].item() for logits, place in ((start, span[0]), (end, span[1]))]
    return pairs[span], others.item(), shares[0] * shares[1]


def test_probability_is_the_product_of_start_and_end(answering: Classifier) -> None:
    encoding = answering.encode(QUESTIONS)
    with torch.no_grad():
        found = answering.ask(Passes).logits(encoding)
    assert encoding.spans is not None
    for text, span in enumerate(encoding.spans.tolist()):
        one, others, share = literal(answering, encoding, text, tuple(span))
        assert found[text].tolist() == pytest.approx([one, others], rel=1e-4, abs=1e-4)
        assert found[text].softmax(-1)[0].item() == pytest.approx(share, rel=1e-3)


def test_confidence_is_the_probability_of_the_prediction(answering: Classifier) -> None:
    """Not that of all other answers together."""
    e = raison.explain(answering, QUESTIONS[0], "random", progress=False)
    assert e.answer is not None
    assert e.confidence == e.probabilities[0]
    word = next(word for word in QUESTIONS[0][1].split() if word != e.answer.predicted.text)
    assert raison.explain(answering, QUESTIONS[0], "random", target=word, progress=False).confidence is None


def test_the_predicted_answer_is_the_best_pair(answering: Classifier) -> None:
    encoding = answering.encode(QUESTIONS)
    decisions = answering.ask(Passes).decisions(encoding).detach()
    for text, found in enumerate(answering.ask(Passes).predicted(encoding).tolist()):
        start, end = decisions[text].tolist()
        places = encoding.context[text].nonzero()[:, 0].tolist()
        assert [place for place, value in enumerate(start) if value > -float("inf")] == places
        pairs = {(i, j): start[i] + end[j] for i in places for j in places if i <= j < i + LONGEST_ANSWER}
        assert tuple(found) == max(pairs, key=pairs.__getitem__)


def test_an_answer_is_not_too_long() -> None:
    head = raison.load(*build_answering("bert")).head
    parts = torch.zeros(1, 2, 60)
    parts[0, 0] = -100.0
    parts[0, 0, 5] = 0.0
    # An end before the start, one that is one token too far, and the last one that is allowed.
    for place, logit in ((4, 20.0), (5 + LONGEST_ANSWER, 9.0), (4 + LONGEST_ANSWER, 8.0)):
        parts[0, 1, place] = logit
    assert head.predicted(parts).tolist() == [[5, 4 + LONGEST_ANSWER]]


def test_nothing_cancels_where_the_answer_is_certain() -> None:
    parts = torch.full((1, 2, 6), -torch.inf)
    parts[0, :, 1:4] = torch.tensor([0.0, 60.0, 0.0])
    logits = answer_logits(parts, torch.tensor([[2, 2]])).double()
    # Four pairs with one end right, four with none: 4 e^60 + 4.
    assert (logits[0, 1] - logits[0, 0]).item() == pytest.approx(-60 + torch.log(torch.tensor(4.0)).item(), rel=1e-5)
    log_odds = Target(torch.tensor([0]), None, "log_odds").scalar(logits)
    assert log_odds.item() == pytest.approx(60 - 1.386294, rel=1e-5)


def test_everything_kept_equals_plain_under_every_removal(answering: Classifier) -> None:
    encoding = answering.encode(QUESTIONS)
    keeps = [torch.ones(1, count, dtype=torch.bool) for count in encoding.unit_counts]
    with torch.no_grad():
        plain = answering.ask(Passes).logits(encoding)
    assert plain.std(0).min() > 1e-3, "a model that ignores its input would pass"
    assert "delete" not in answering.removals
    for removal in answering.removals:
        torch.testing.assert_close(torch.cat(answering.masked_logits(encoding, keeps, removal)), plain, **CLOSE)


def test_masked_texts_keep_their_answer(answering: Classifier) -> None:
    """Each keep alone, the ids replaced by hand; also under a budget of one row at a time."""
    removal = "unk" if answering.tokenizer.mask_token_id is None else "mask"
    absent_id = getattr(answering.tokenizer, f"{removal}_token_id")
    encoding = answering.encode(QUESTIONS)
    generator = torch.Generator().manual_seed(0)
    keeps = [torch.rand(5, count, generator=generator) < 0.5 for count in encoding.unit_counts]
    found = answering.masked_logits(encoding, keeps, removal)
    answering.budget.tokens = 20
    for text, (rows, few) in enumerate(zip(found, answering.masked_logits(encoding, keeps, removal), strict=True)):
        torch.testing.assert_close(rows, few, **CLOSE)
        part = encoding.select([text])
        for keep, logits in zip(keeps[text], rows, strict=True):
            absent = part.scored & ~torch.cat([keep, torch.tensor([True])])[part.unit_ids]
            changed = replace(part, input_ids=part.input_ids.masked_fill(absent, absent_id))
            with torch.no_grad():
                torch.testing.assert_close(logits, answering.ask(Passes).logits(changed)[0], **CLOSE)


def test_gradients_agree_with_finite_differences(answering: Classifier) -> None:
    answering.model.double()
    encoding = answering.encode(QUESTIONS)
    embeds = answering.ask(WordEmbeddings).embed(encoding)
    one, target = torch.ones(1), Target(torch.zeros(len(encoding), dtype=torch.long), None, "log_odds")
    sums, values = answering.ask(WordEmbeddings).path_gradients(
        encoding, lambda text, _at: embeds[text : text + 1], one, one, target
    )
    direction = torch.randn(embeds.shape, generator=torch.Generator().manual_seed(1), dtype=embeds.dtype)
    step = 1e-4
    with torch.no_grad():
        torch.testing.assert_close(values[:, 0], target.scalar(answering.ask(Passes).logits(encoding)))
        ahead, behind = (
            target.scalar(answering.ask(Passes).logits(encoding, embeds + s * step * direction)) for s in (1, -1)
        )
    for text, (gradient, slope) in enumerate(zip(sums, (ahead - behind) / (2 * step), strict=True)):
        expected = (gradient * direction[text, : len(gradient)]).sum().item()
        assert slope.item() == pytest.approx(expected, rel=5e-3, abs=1e-3)


def test_decisions_let_gradients_through_and_ignore_the_rest(answering: Classifier) -> None:
    encoding = answering.encode(QUESTIONS)
    gold = answer_tokens(encoding, [Answer(4, 14, "old sailor"), Answer(2, 6, "dull"), Answer(2, 6, "love")])
    loss = torch.nn.functional.cross_entropy(answering.ask(Passes).decisions(encoding).flatten(0, 1), gold.flatten())
    loss.backward()
    gradients = [p.grad for p in answering.model.parameters() if p.grad is not None]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert max(gradient.abs().max() for gradient in gradients) > 1e-4


def test_a_classifier_makes_one_choice() -> None:
    model = raison.load(*build("bert"))
    encoding = model.encode([question for question, _ in QUESTIONS])
    with torch.no_grad():
        assert torch.equal(model.ask(Passes).decisions(encoding)[:, 0], model.ask(Passes).logits(encoding))
        assert (
            model.ask(Passes).predicted(encoding)[:, 0].tolist()
            == model.ask(Passes).logits(encoding).argmax(-1).tolist()
        )
    assert encoding.spans is None


def test_tokens_of_answers_and_back(answering: Classifier) -> None:
    encoding = answering.encode(QUESTIONS)
    answers = [Answer(4, 14, "old sailor"), Answer(7, 11, "plot"), Answer(25, 31, "nobody")]
    said = span_answers(encoding, answer_tokens(encoding, answers))
    for text, (answer, found) in enumerate(zip(answers, said, strict=True)):
        assert found.start <= answer.start
        assert answer.end <= found.end
        assert QUESTIONS[text][1][found.start : found.end] == found.text
        assert answer.text in found.text


def test_an_answer_outside_the_window_is_told(answering: Classifier) -> None:
    long = ("what ?", "word " * 200 + "end")
    encoding = answering.encode([QUESTIONS[0], long], truncate=True)
    late, early = Answer(1000, 1003, "end"), Answer(0, 4, "word")
    assert inside_window(encoding, [early, late]) == [True, False]
    assert inside_window(encoding, [early, early]) == [True, True]
    with pytest.raises(InputError, match=r"'end' of text 2 of 2 .* outside what the model reads"):
        answer_tokens(encoding, [early, late])
    # What is too long is cut off the context, never off the question.
    assert [unit.text for unit in encoding.units[1] if unit.segment == 0] == ["what", "?"]


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("no pair", InputError, r"needs pairs \(question, context\)"),
        (("word " * 200, "a context"), TextTooLongError, "shorten the question"),
        (("what ?", "word " * 300), TextTooLongError, "truncate=True"),
        (("what ?", "a"), InputError, "has 1 token"),
        (("what ?", " "), InputError, "blank"),
    ],
)
def test_texts_that_cannot_be_asked(tiny: Classifier, text: object, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        raison.explain(tiny, text, "occlusion")


def test_settings_that_cannot_be(tiny: Classifier) -> None:
    with pytest.raises(UnsupportedError, match="a deleted token has none"):
        raison.explain(tiny, QUESTIONS[0], "occlusion", removal="delete")
    with pytest.raises(InputError, match="'a ship' is not in the context"):
        raison.explain(tiny, QUESTIONS[0], "occlusion", target="a ship")
    with pytest.raises(InputError, match="names two answers"):
        raison.explain(tiny, QUESTIONS[0], "occlusion", target=("old", "sailor"))
    with pytest.raises(UnsupportedError, match="attention_paths"):
        raison.explain(tiny, QUESTIONS[0], "rpi")


def test_a_checkpoint_without_a_head_is_refused(tmp_path: Path) -> None:
    model, tokenizer = build_answering("bert")
    model.save_pretrained(tmp_path / "whole")
    tokenizer.save_pretrained(tmp_path / "whole")
    loaded = raison.load(str(tmp_path / "whole"))
    own = raison.load(model, tokenizer)
    encoding = own.encode(QUESTIONS)
    with torch.no_grad():
        torch.testing.assert_close(
            loaded.ask(Passes).logits(loaded.encode(QUESTIONS)), own.ask(Passes).logits(encoding)
        )
    state = {name: value for name, value in model.state_dict().items() if "qa_outputs" not in name}
    model.save_pretrained(tmp_path / "headless", state_dict=state)
    tokenizer.save_pretrained(tmp_path / "headless")
    with pytest.raises(LoadError, match=r"no trained question answering head .*qa_outputs"):
        raison.load(str(tmp_path / "headless"))


def test_a_fresh_head_is_decided_by_its_seed(tmp_path: Path) -> None:
    model, tokenizer = build("bert")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    before = torch.get_rng_state()
    first, second, other = (zoo.fresh_span_model(tmp_path, seed)[0] for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.qa_outputs.weight, second.qa_outputs.weight)
    assert not torch.equal(first.qa_outputs.weight, other.qa_outputs.weight)
    assert first.qa_outputs.weight.shape[0] == 2, "whatever the base's own number of classes is"


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_model_becomes_one_of_answers(name: str, tmp_path: Path) -> None:
    model, tokenizer = build_language_model(name)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    fresh, _ = zoo.fresh_span_model(tmp_path)
    found = getattr(fresh, fresh.base_model_prefix).state_dict()
    expected = model.base_model.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[part], expected[part]) for part in expected)
    # What is saved after a training is read back without the base's names.
    fresh.save_pretrained(tmp_path / "trained")
    tokenizer.save_pretrained(tmp_path / "trained")
    trained = read_whole(AutoModelForQuestionAnswering, tmp_path / "trained").state_dict()
    assert all(torch.equal(trained[part], weight) for part, weight in fresh.state_dict().items())


def test_the_explained_answer(answering: Classifier) -> None:
    own = raison.explain(answering, QUESTIONS[0], "occlusion")
    encoding = answering.encode(QUESTIONS[:1])
    [said] = span_answers(encoding, encoding.spans)
    assert own.answer is not None
    assert own.answer.predicted == said
    assert own.prediction == own.classes[0] == said.text
    assert own.classes[1:] == ("other answers",)
    assert own.probabilities[0] == pytest.approx(own.answer.start_probability * own.answer.end_probability, rel=1e-3)
    assert own.value_full == pytest.approx(own.probabilities[0])
    assert {unit.segment for unit in own.units} == {0, 1}
    # The class is the answer, however improbable it is.
    assert own.probabilities[0] < 0.5
    assert own.target == "answer"


@pytest.mark.parametrize("named", ["answer", "other answers", "the sea"])
def test_no_answer_but_the_models_own_is_evaluated(tiny: Classifier, named: str) -> None:
    """Even if it reads like the name of a class."""
    asked = ("what is it ?", "the answer is the sea and other answers are quiet")
    e = raison.explain(tiny, asked, "occlusion", target=named)
    with pytest.raises(InputError, match=f"the target '{named}' is not the answer of .* Leave target out"):
        raison.evaluate(tiny, e, "log_odds", progress=False)
    with pytest.raises(InputError, match="only some texts have answers as targets"):
        raison.explain(tiny, [asked, asked], "occlusion", target=[named, None])


def test_a_part_of_the_context_is_explained(answering: Classifier) -> None:
    asked = ["modest story", "plot", "nobody"]
    encoding = answering.encode(QUESTIONS)
    for number, text in enumerate(asked):
        e = raison.explain(answering, QUESTIONS[number], "occlusion", target=text)
        start = QUESTIONS[number][1].index(text)
        span = answer_tokens(encoding.select([number]), [Answer(start, start + len(text), text)])[0].tolist()
        assert e.value_full == pytest.approx(literal(answering, encoding, number, tuple(span))[2], rel=1e-3)
        assert text in e.classes[0]
        answering.model.float()
    together = raison.explain(answering, QUESTIONS, "occlusion", target=asked)
    assert [text in e.classes[0] for e, text in zip(together, asked, strict=True)] == [True] * 3


def test_only_own_answers_are_measured(tiny: Classifier) -> None:
    e = raison.explain(tiny, QUESTIONS[0], "occlusion", target="modest story")
    assert e.answer is not None
    assert not e.answer.is_predicted
    with pytest.raises(InputError, match="modest story"):
        raison.evaluate(tiny, [e], ["sufficiency(removal='mask')"])
    with pytest.raises(InputError, match="only the model's own answers"):
        raison.compare(tiny, QUESTIONS, ["occlusion"], ["sufficiency(removal='mask')"], target="a", progress=False)
