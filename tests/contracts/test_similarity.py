"""Embedding models: the similarity of two texts, against a literal cosine of literal vectors, on every family."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, LoadError, RaisonError, UnsupportedError
from raison.core.method import Property
from raison.core.metric import Need
from raison.core.problem import Evaluations, Ledger, Problem
from raison.core.results.explanation import Explanation
from raison.core.targets.target import Target
from raison.methods import CATALOGUE
from raison.metrics import CATALOGUE as METRICS
from raison.models.adapters.checks.selfcheck import selfcheck
from raison.models.adapters.classifier import Classifier
from raison.models.tokens.multi_input import MultiInputEncoder
from raison.report.explanations.html import page
from raison.report.explanations.terminal import explanation_text
from raison.report.style.terminal_text import plain
from tests.contracts.test_methods import SHORTER, fingerprint
from tests.contracts.test_numbers import refused
from tests.threads import in_another
from tests.tiny import EMBEDDING, ENCODER_DECODERS, TINY, build_embedder, build_language_model

PAIRS = (
    ("the old sailor told a story", "a modest story about the sea"),
    ("a dull plot", "I love this so much, and nobody believed him at all"),
    ("dull", "a boring plot !"),
)
POOLINGS = ("mean", "cls", "max", "lasttoken")


@cache
def embedder(family: str, pooling: str = "mean", measure: str = "cosine") -> Classifier:
    found = raison.load(*build_embedder(family), similarity=measure, pooling=pooling)
    assert isinstance(found, Classifier)
    return found


def vector(model: Classifier, text: str, pooling: str, hidden: set[int] = frozenset(), token: int = 0) -> Tensor:
    """One text in one pass of the plain model, pooled by the word's plain meaning; hidden words are a token."""
    inputs = model.tokenizer(text, return_tensors="pt")
    for place, owner in enumerate(inputs.word_ids(0)):
        if owner in hidden:
            inputs["input_ids"][0, place] = token
    known = {name: value for name, value in inputs.items() if name in model.tokenizer.model_input_names}
    with torch.no_grad():
        states = model.model(**known).last_hidden_state[0]
    return {"mean": states.mean(0), "cls": states[0], "max": states.max(0).values, "lasttoken": states[-1]}[pooling]


def cosine(first: Tensor, second: Tensor) -> float:
    return float(first @ second) / float(first.norm() * second.norm())


def literal(model: Classifier, pair: tuple[str, str], pooling: str = "mean", measure: str = "cosine") -> float:
    first, second = (vector(model, text, pooling) for text in pair)
    return float(first @ second) if measure == "dot" else cosine(first, second)


@contextmanager
def counted(model: nn.Module) -> Iterator[list[tuple[int, ...]]]:
    """The rows that the model reads, as tokens without padding."""
    rows: list[tuple[int, ...]] = []

    def note(_module: nn.Module, _args: object, inputs: dict[str, Tensor]) -> None:
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        lengths = [ids.shape[1]] * len(ids) if mask is None else mask.sum(1).tolist()
        rows.extend(tuple(row[:length].tolist()) for row, length in zip(ids, lengths, strict=True))

    handle = model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield rows
    finally:
        handle.remove()


@pytest.mark.parametrize("family", EMBEDDING)
def test_the_value_is_the_cosine_of_the_plain_models_vectors(family: str) -> None:
    model = embedder(family)
    assert (model.classes, model.outputs, model.pairs) == (("similarity",), "number", True)
    with torch.no_grad():
        found = model.ask(Passes).logits(model.encode(PAIRS))[:, 0]
        alone = torch.cat([model.ask(Passes).logits(model.encode([pair]))[:, 0] for pair in PAIRS])
    expected = torch.tensor([literal(model, pair) for pair in PAIRS])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(found, alone, atol=1e-5, rtol=0)
    assert expected.std() > 1e-3, "vectors that ignore their texts would pass"


@pytest.mark.parametrize("measure", ["cosine", "dot"])
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_every_pooling_and_measure(family: str, pooling: str, measure: str) -> None:
    model = embedder(family, pooling, measure)
    e = raison.explain(model, PAIRS[0], "occlusion", progress=False)
    wanted = literal(model, PAIRS[0], pooling, measure)
    assert e.value_full == pytest.approx(wanted, abs=1e-5 * max(1.0, abs(wanted)))


@pytest.mark.parametrize("family", EMBEDDING)
def test_everything_kept_is_plain_and_embeddings_change_nothing(family: str) -> None:
    model = embedder(family)
    encoding = model.encode(PAIRS)
    with torch.no_grad():
        own = model.ask(Passes).logits(encoding)
        given = model.ask(Passes).logits(encoding, model.ask(WordEmbeddings).embed(encoding))
    torch.testing.assert_close(given, own, atol=1e-5, rtol=0)
    keeps = [torch.ones(1, count, dtype=torch.bool) for count in encoding.unit_counts]
    for removal in model.removals:
        torch.testing.assert_close(torch.cat(model.masked_logits(encoding, keeps, removal)), own, atol=1e-5, rtol=0)
    nothing = [~keep for keep in keeps]
    assert torch.isfinite(torch.cat(model.masked_logits(encoding, nothing, "delete"))).all()


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("family", EMBEDDING)
def test_doctor_finds_nothing_wrong(family: str) -> None:
    assert [finding for finding in selfcheck(embedder(family)) if not finding.passed] == []


def test_masked_values_are_those_of_texts_written_out() -> None:
    model, pair = embedder("bert"), ("a dull plot", "the end is good")
    e = raison.explain(model, pair, "occlusion", removal="unk", progress=False)
    unknown = model.tokenizer.unk_token_id
    for number, (unit, score) in enumerate(zip(e.units, e.scores, strict=True)):
        hidden = {number if unit.segment == 0 else number - 3}
        vectors = [
            vector(model, text, "mean", hidden if side == unit.segment else set(), unknown)
            for side, text in enumerate(pair)
        ]
        assert score == pytest.approx(e.value_full - cosine(*vectors), abs=1e-5)
    empty = [vector(model, text, "mean", {0, 1, 2, 3}, unknown) for text in pair]
    assert e.value_empty == pytest.approx(cosine(*empty), abs=1e-5)


def test_each_masked_half_is_embedded_once() -> None:
    model = embedder("bert")
    encoding = model.encode([PAIRS[0]])
    keeps = [torch.rand(200, encoding.unit_counts[0], generator=torch.Generator().manual_seed(0)) < 0.5]
    halves = encoding.units[0][0:6], encoding.units[0][6:]
    assert [{unit.segment for unit in half} for half in halves] == [{0}, {1}]
    different = len({tuple(row) for row in keeps[0][:, :6].tolist()})
    different += len({tuple(row) for row in keeps[0][:, 6:].tolist()})
    with counted(model.model) as rows:
        model.masked_logits(encoding, keeps, "mask")
    # The first batch is also run otherwise, to check the shortcut of the last layer.
    assert len(set(rows)) == different
    with counted(model.model) as rows:
        model.masked_logits(encoding, keeps, "mask")
    assert len(rows) == different


def test_one_text_may_be_held_fixed() -> None:
    model = embedder("bert")
    e = raison.explain(model, PAIRS[0], "shapley_sampling(samples=8)", units="second", progress=False)
    assert [unit.text for unit in e.units] == PAIRS[0][1].split()
    assert {unit.segment for unit in e.units} == {1}
    mask = model.tokenizer.mask_token_id
    vectors = vector(model, PAIRS[0][0], "mean"), vector(model, PAIRS[0][1], "mean", set(range(6)), mask)
    assert e.value_empty == pytest.approx(cosine(*vectors), abs=1e-5)
    both = raison.explain(model, [PAIRS[0], PAIRS[1]], "integrated_gradients(steps=8)", units="first", progress=False)
    assert [{unit.segment for unit in one.units} for one in both] == [{0}, {0}]
    sentence = raison.explain(model, PAIRS[0], "occlusion", units="first", unit="sentence", progress=False)
    assert [unit.text for unit in sentence.units] == [PAIRS[0][0]]
    for units in ("third", "both", "words"):
        with pytest.raises(InputError):
            raison.explain(model, PAIRS[0], "occlusion", units=units, progress=False)
    with pytest.raises(InputError, match="several strings"):
        raison.explain(raison.load(*TINY["bert"]()), "a dull plot", "occlusion", units="first", progress=False)


@pytest.mark.parametrize("name", CATALOGUE.names)
@pytest.mark.parametrize("family", ["bert", "llama", "t5_encoder"])
def test_every_method_explains_it_or_says_why_not(family: str, name: str) -> None:
    model, method = embedder(family), CATALOGUE.create(SHORTER.get(name, name))
    before = fingerprint(model)
    if refused(model, method):
        with pytest.raises(RaisonError):
            raison.explain(model, PAIRS[2], method, progress=False)
    else:
        e = raison.explain(model, PAIRS[2], method, progress=False)
        assert np.isfinite(e.scores).all()
        assert Explanation.from_json(e.to_json()) == e
        if Property.COMPLETE in method.properties:
            assert e.completeness_gap == pytest.approx(e.notes.get("completeness_gap", 0.0), abs=1e-3)
    assert fingerprint(model) == before


ATTENTION = ("attention_average", "attention_last", "attention_rollout", "generic_attention")


def attended(model: Classifier, text: str) -> tuple[Tensor, list[Tensor]]:
    """One text in one pass of a plain copy of the model: the last states, and the attention of each layer."""
    plain_model = copy.deepcopy(model.model)
    plain_model.set_attn_implementation("eager")
    inputs = model.tokenizer(text, return_tensors="pt")
    known = {name: value for name, value in inputs.items() if name in model.tokenizer.model_input_names}
    outputs = plain_model(**known, output_attentions=True)
    return outputs.last_hidden_state[0], list(outputs.attentions)


def read_rows(pooling: str, tokens: int) -> Tensor:
    """What of each token's last state a vector is made of."""
    if pooling == "mean":
        return torch.full((tokens,), 1 / tokens)
    return torch.nn.functional.one_hot(torch.tensor(0 if pooling == "cls" else tokens - 1), tokens).float()


def followed(name: str, rows: Tensor, layers: list[Tensor], slopes: list[Tensor]) -> Tensor:
    """The methods' formulas for one text, written as products of matrices."""
    one = torch.eye(len(rows))
    means = [layer[0].mean(0) for layer in layers]
    if name == "attention_average":
        return torch.stack(means).mean(0).mean(0)
    if name == "attention_last":
        return rows @ means[-1]
    product = one
    if name == "attention_rollout":
        for mean in means:
            product = (mean + one) / 2 @ product
        return rows @ product
    for layer, slope in zip(layers, slopes, strict=True):
        product = product + (slope * layer).relu()[0].mean(0) @ product
    return rows @ (product - one)


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "t5_encoder"])
def test_attention_is_that_of_each_text_alone(family: str, pooling: str) -> None:
    """With half the prediction's row in each; the gradient is that of the cosine of both."""
    model, pair = embedder(family, pooling), PAIRS[0]
    read = [attended(model, text) for text in pair]
    rows = [read_rows(pooling, len(states)) for states, _ in read]
    first, second = (row @ states for row, (states, _) in zip(rows, read, strict=True))
    value = (first @ second) / (first.norm() * second.norm())
    slopes = torch.autograd.grad(value, [layer for _, layers in read for layer in layers])
    count, tokens = len(read[0][1]), sum(map(len, rows))
    encoding = model.encode(PAIRS)
    target = Target(torch.zeros(len(PAIRS), dtype=torch.long), None, "logit")
    for name in ATTENTION:
        ledger = Ledger.empty(len(PAIRS))
        problem = Problem(model, encoding, target, model.removals[0], ledger, Evaluations())
        scores = CATALOGUE.create(name).attribute(problem, [])[0]
        expected = []
        for number, (_, layers) in enumerate(read):
            # On average the rows of all tokens of both texts count alike.
            share = len(rows[number]) / tokens if name == "attention_average" else 0.5
            of_text = followed(name, rows[number], layers, list(slopes[number * count : (number + 1) * count]))
            expected.append(share * of_text.detach())
        torch.testing.assert_close(scores[:tokens], torch.cat(expected).double(), atol=1e-6, rtol=0, msg=name)
        assert float(scores[tokens:].abs().sum()) == 0
        assert (ledger.evaluations[0], ledger.gradients[0]) == (1, int(name == "generic_attention"))


@pytest.mark.parametrize("name", ["alti", "globenc"])
def test_layers_are_those_of_each_text_alone(name: str) -> None:
    model = embedder("bert")
    encoder = model.use.encoder
    assert isinstance(encoder, MultiInputEncoder)
    alone = model.over(model.model, replace(model.use, encoder=encoder.inner, join=None, strings=1))
    # Without the similarity, its outputs are the numbers of a text's embedding.
    alone.classes = tuple(map(str, range(model.model.config.hidden_size)))
    found = raison.explain(model, list(PAIRS), name, progress=False)
    for e, pair in zip(found, PAIRS, strict=True):
        halves = [raison.explain(alone, [text], name, target=0, progress=False)[0] for text in pair]
        assert list(e.scores) == pytest.approx([score / 2 for half in halves for score in half.scores], abs=1e-6)


REFUSED = {
    "decompx": "not a linear function",
    "value_zeroing": "no attention or hidden states span all of them",
    "rpi": "no attention or hidden states span all of them",
    "deep_lift": "for which no backward rule is known",
    "sp_pi": "only causal models",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_looks_into_one_pass_is_refused_with_its_reason(name: str) -> None:
    with pytest.raises(UnsupportedError, match=REFUSED[name]):
        raison.explain(embedder("bert"), PAIRS[0], name, progress=False)


def test_a_vector_of_largest_values_has_no_row_of_attention() -> None:
    for name in ("attention_rollout", "alti"):
        with pytest.raises(UnsupportedError, match="max-pooled over all tokens"):
            raison.explain(embedder("bert", "max"), PAIRS[0], name, progress=False)


@pytest.mark.parametrize("name", METRICS.names)
def test_every_metric_measures_it_or_says_why_not(name: str) -> None:
    metric, model = METRICS.create(name), embedder("bert")
    found = raison.explain(model, PAIRS, "occlusion", progress=False)
    if metric.needs - {Need.EMBEDDINGS, Need.SEVERAL_TEXTS, Need.METHOD, Need.VALUES}:
        with pytest.raises(UnsupportedError, match=name):
            raison.evaluate(model, found, [name], progress=False)
        return
    values = raison.evaluate(model, found, [name], progress=False)[name].values
    assert np.isfinite([value for value in values if not np.isnan(value)]).all()


def test_gradients_are_those_of_finite_differences() -> None:
    model = raison.load(build_embedder("bert")[0].double(), build_embedder("bert")[1], similarity="cosine")
    encoding = model.encode(PAIRS[:1])
    embeds = model.ask(WordEmbeddings).embed(encoding)
    target, one = Target(torch.zeros(1, dtype=torch.long), None, "logit"), torch.ones(1)
    (gradient,), _ = model.ask(WordEmbeddings).path_gradients(encoding, lambda _text, _at: embeds, one, one, target)
    direction = torch.randn(embeds.shape, generator=torch.Generator().manual_seed(1), dtype=embeds.dtype)
    step = 1e-5
    with torch.no_grad():
        ahead, behind = (model.ask(Passes).logits(encoding, embeds + sign * step * direction) for sign in (1, -1))
    slope = float((ahead - behind) / (2 * step))
    assert slope == pytest.approx(float((gradient * direction[0]).sum()), rel=1e-5)
    assert abs(slope) > 1e-4
    assert (gradient.norm(dim=-1) > 0).all(), "both texts have gradients"


def test_threads_share_it() -> None:
    model = embedder("mpnet")
    calls = ("occlusion", "integrated_gradients(steps=4)", "kernel_shap(samples=32)")
    alone = [raison.explain(model, PAIRS[0], call, progress=False).scores for call in calls]
    found: list[object] = []
    in_another(lambda: found.extend(raison.explain(model, PAIRS[0], call, progress=False).scores for call in calls))
    assert found == alone


def test_views_say_a_score_and_never_a_percentage() -> None:
    e = raison.explain(embedder("bert"), PAIRS[0], "occlusion", progress=False)
    shown = plain(explanation_text(e))
    assert shown.startswith(f"Score      {e.value_full:.3g} (similarity)")
    assert "%" not in shown
    assert f"Score <b><bdi>{e.value_full:.3g}</bdi></b> (similarity)" in page(e)


def test_the_default_method_explains_pairs_and_rankings() -> None:
    model = embedder("bert")
    assert np.isfinite(raison.explain(model, PAIRS[0], progress=False).scores).all()
    e = raison.explain(model, ("who told it ?", [text for _, text in PAIRS]), progress=False)
    assert np.isfinite(e.scores).all()
    assert e.target.endswith(("document 1", "document 2", "document 3"))


def test_comparisons_judge_it() -> None:
    model = embedder("bert")
    metrics = ["comprehensiveness", "sufficiency"]
    found = raison.compare(model, PAIRS, ["occlusion"], metrics, units="second", progress=False)
    alone = raison.evaluate(
        model, raison.explain(model, PAIRS, "occlusion", units="second", progress=False), metrics, progress=False
    )
    assert found["occlusion"]["sufficiency"].values == pytest.approx(alone["sufficiency"].values, abs=1e-6)


@pytest.mark.parametrize("text", ["one text", ("a", "b", "c")])
def test_other_texts_are_refused(text: object) -> None:
    with pytest.raises(InputError, match="pair"):
        raison.explain(embedder("bert"), text, "occlusion", progress=False)


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_models_that_do_more_are_refused(family: str) -> None:
    model, tokenizer = TINY[family]()
    with pytest.raises(LoadError, match="T5EncoderModel"):
        raison.load(model.base_model, tokenizer, similarity="cosine")
    with pytest.raises(LoadError, match=r"base_model"):
        raison.load(model, tokenizer, similarity="cosine")


def test_a_pooling_without_a_similarity_is_refused() -> None:
    model, tokenizer = build_embedder("bert")
    with pytest.raises(InputError, match="similarity="):
        raison.load(model, tokenizer, pooling="cls")
    with pytest.raises(InputError, match="prompt"):
        raison.load(*build_language_model("gpt2"), similarity="cosine", prompt="sentiment")
    with pytest.raises(InputError, match="similarity"):
        raison.load(model, tokenizer, similarity="euclidean")
