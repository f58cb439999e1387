"""Explanations of a model and of its copies with randomised blocks, side by side."""

import copy
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

import raison
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Evaluations, Problem
from raison.core.registry import label_of
from raison.explaining.answers import answers_of
from raison.explaining.attribution import run, scores_of
from raison.explaining.batch import prepare
from raison.explaining.settings import Settings
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.generator import Generator
from raison.models.derived.randomised import RandomisedModels
from raison.models.stack.blocks import drawn_values, find_blocks
from raison.numerics.measures.agreement import kendall, spearman, top_k_overlap
from raison.trust import randomisation
from raison.trust.randomisation import Randomisation, similarities, without_parameters
from raison.trust.records import BlockSimilarity
from tests.tiny import QUESTIONS, TINY, UNLIKE, build_answering, build_language_model, build_writer
from tests.unit.models.stack.test_tap_isolation import snapshot

SENTENCES = (
    "the old sailor told a modest story about the sea",
    "a boring plot , and a loud one",
    "nobody believed him at all",
)
SETTINGS = Settings()
GRADIENT, ATTENTION, PERTURBATION = "input_x_gradient", "attention_rollout", "kernel_shap(samples=40)"


@dataclass(frozen=True)
class Order(Method):
    """Scores by the place of a unit, after a look at the model that changes nothing."""

    reference: ClassVar[str] = ""
    passes: ClassVar[str] = "1 forward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        problem.values([torch.zeros(1, count, dtype=torch.bool) for count in problem.encoding.unit_counts])
        width = max(problem.encoding.unit_counts)
        return torch.arange(float(width)).expand(len(problem.encoding), width)

    def cost(self, units: int) -> Cost:
        return Cost(1)


@dataclass(frozen=True)
class Idle(Method):
    """Scores by the place of a unit, whatever the model."""

    reference: ClassVar[str] = ""
    passes: ClassVar[str] = "0"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        width = max(problem.encoding.unit_counts)
        return torch.arange(float(width)).expand(len(problem.encoding), width)

    def cost(self, units: int) -> Cost:
        return Cost()


@dataclass(frozen=True)
class Taught(Idle):
    """Claims an explainer of its own."""

    properties: ClassVar[frozenset[Property]] = frozenset({Property.TRAINED})


WRITTEN = [
    {
        "question": question,
        "sources": {
            "sea": "the old sailor told a story.",
            "plot": "a dull plot.",
            "owl": "she sold a film.",
            "port": "he loved it.",
        },
        "answer": answer,
    }
    for question, answer in (("who told a story?", "the sailor told it."), ("what plot?", "a dull one."))
]


def tiny(name: str = "bert") -> Classifier:
    model: Classifier = raison.load(*TINY[name]())
    return model


def all_of(
    model: Classifier, methods: Sequence[str | Method], plan: Randomisation, texts: Sequence[object] = SENTENCES
) -> list[BlockSimilarity]:
    units = similarities(model, list(texts), methods, SETTINGS, plan)  # type: ignore[arg-type]
    return [record for unit in units for record in unit]


@pytest.mark.parametrize(("name", "how"), [("bert", "initial"), ("gpt2", "permuted")])
def test_as_a_model_that_was_overwritten_by_hand(name: str, how: str) -> None:
    """Numbers of each order and each draw again: a deep copy, its blocks overwritten, and the methods run on it."""
    model = tiny(name)
    plan = Randomisation(how=how, draws=2, top=2, seed=4)  # type: ignore[arg-type]
    methods = [GRADIENT, ATTENTION, PERTURBATION]
    found = {record.key: record for record in all_of(model, methods, plan)}
    total = len(find_blocks(model.core))
    assert len(found) == 3 * 2 * total * 2 * len(SENTENCES)
    own = prepare(model, list(SENTENCES), SETTINGS)
    created = [raison.methods.CATALOGUE.create(method) for method in methods]
    for (draw, order), blocks in itertools.product(enumerate(plan.orders), range(1, total + 1)):
        slow = raison.load(copy.deepcopy(model.model), model.tokenizer)
        numbers = range(1, blocks + 1) if order == "cascading" else [blocks]
        with torch.no_grad():
            for place in [total - number for number in numbers]:
                block = find_blocks(model.core)[place]
                values = drawn_values(model.core, block, how, (4, draw, place))
                for target, source in zip(find_blocks(slow.core)[place].parameters(), block.parameters(), strict=True):
                    target.copy_(values[id(source)])
        other = replace(own, model=slow, evaluations=Evaluations(), maps={})
        for method in created:
            for text, (a, b) in enumerate(zip(run(own, method), run(other, method), strict=True)):
                record = found[label_of(method), order, blocks, draw, text]
                one, two = np.asarray(a.scores), np.asarray(b.scores)
                wanted = [spearman(one, two), kendall(one, two), top_k_overlap(one, two, 2)]
                assert [record.spearman, record.kendall, record.overlap] == pytest.approx(wanted, nan_ok=True)
                assert record.of == total


@pytest.mark.parametrize(("name", "built"), [("llama", build_language_model), ("t5", build_writer)])
def test_a_model_that_writes_as_one_that_was_overwritten_by_hand(name: str, built: Callable[[str], Any]) -> None:
    """The same answers, cited by a deep copy whose blocks are overwritten: attention, gradients, left-out sources."""
    writer = Generator(*built(name), name)
    methods = ["occlusion", "input_x_gradient", "attention_rollout"]
    plan, settings = Randomisation(orders=("cascading",), seed=4), Settings("part", removal="delete")
    answers = answers_of(writer, WRITTEN, "plain")
    before = snapshot(writer.model)
    units = similarities(answers.of(writer), answers.texts, methods, settings, plan)
    found = {record.key: record for unit in units for record in unit}
    assert snapshot(writer.model) == before
    own = find_blocks(writer.core)
    assert len(found) == len(methods) * len(own) * len(WRITTEN)
    assert np.mean([record.spearman for record in found.values() if record.blocks == len(own)]) < 0.9
    pairs = list(itertools.product(methods, enumerate(WRITTEN)))
    ours = [cited(writer, method, row) for method, (_, row) in pairs]
    for blocks in {1, len(own)}:
        slow = Generator(copy.deepcopy(writer.model), writer.tokenizer, name)
        with torch.no_grad():
            for place in range(len(own) - blocks, len(own)):
                values = drawn_values(writer.core, own[place], "initial", (4, 0, place))
                for target, source in zip(
                    find_blocks(slow.core)[place].parameters(), own[place].parameters(), strict=True
                ):
                    target.copy_(values[id(source)])
        for (method, (text, row)), a in zip(pairs, ours, strict=True):
            b = cited(slow, method, row)
            assert found[method, "cascading", blocks, 0, text].kendall == pytest.approx(kendall(a, b), nan_ok=True)


def cited(writer: Generator, method: str, row: dict[str, Any]) -> np.ndarray:
    given = {"answer": row["answer"], "template": "plain", "draws": 0, "within": "source", "method": method}
    return np.array(raison.cite(writer, row["question"], row["sources"], removal="delete", **given).scores[0])


@pytest.mark.parametrize("name", sorted(set(UNLIKE) - {"albert"}))
def test_every_family(name: str) -> None:
    model = tiny(name)
    before, state = snapshot(model.model), torch.get_rng_state()
    total = len(find_blocks(model.core))
    seen = []
    for unit in similarities(model, list(SENTENCES[:2]), ["saliency", "occlusion"], SETTINGS, Randomisation()):
        # Also while work goes on.
        assert snapshot(model.model) == before
        seen += unit
    assert torch.equal(torch.get_rng_state(), state)
    for method in ("saliency", "occlusion"):
        whole = [r.spearman for r in seen if (r.method, r.order, r.blocks) == (method, "cascading", total)]
        assert np.mean(whole) < 0.999, "another model is explained otherwise"
        # The last block alone is the beginning of both orders.
        first = [[replace(r, order="cascading") for r in seen if (r.method, r.order, r.blocks) == (method, order, 1)]
                 for order in ("cascading", "independent")]  # fmt: skip
        assert len(first[0]) == 2
        assert first[0] == first[1]


def test_a_method_that_ignores_the_parameters_scores_one_everywhere() -> None:
    model = tiny()
    found = all_of(model, [Order(), "saliency"], Randomisation())
    toy = [record for record in found if record.method == label_of(Order())]
    assert len(toy) == 2 * 3 * len(SENTENCES)
    for record in toy:
        assert (record.spearman, record.kendall, record.overlap) == pytest.approx((1, 1, 1), abs=1e-9)
    assert any(record.spearman < 0.9 for record in found if record.method == "saliency")


def test_the_class_that_is_explained_stays() -> None:
    model = tiny()
    batch = prepare(model, list(SENTENCES), SETTINGS)
    other = RandomisedModels(model, "initial", (0, 0)).model(range(1, 4))
    theirs = prepare(other, list(SENTENCES), SETTINGS)
    assert not torch.equal(batch.target.index, theirs.target.index), "the case says nothing otherwise"
    fixed = Settings(target=batch.target.index.tolist())
    wanted = [e.scores for e in run(prepare(other, list(SENTENCES), fixed), raison.methods.InputXGradient())]
    mine = [e.scores for e in run(batch, raison.methods.InputXGradient())]
    found = all_of(model, [GRADIENT], Randomisation(orders=("cascading",)))
    for record in found:
        if record.blocks == 3:
            assert record.spearman == spearman(np.asarray(mine[record.text]), np.asarray(wanted[record.text]))


def test_an_answer_that_is_explained_stays() -> None:
    model = raison.load(*build_answering("bert"))
    own = prepare(model, list(QUESTIONS), SETTINGS)
    other = RandomisedModels(model, "initial", (0, 0)).model(range(1, 4))
    assert not torch.equal(own.encoding.spans, other.encode(list(QUESTIONS)).spans)
    theirs = replace(own, model=other, evaluations=Evaluations(), maps={})
    found = {record.text: record for record in all_of(model, ["occlusion"], Randomisation(), QUESTIONS)
             if (record.order, record.blocks) == ("cascading", 3)}  # fmt: skip
    pairs = zip(run(own, raison.methods.Occlusion()), run(theirs, raison.methods.Occlusion()), strict=True)
    for text, (a, b) in enumerate(pairs):
        wanted = spearman(np.asarray(a.scores), np.asarray(b.scores))
        assert found[text].spearman == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize("method", [GRADIENT, PERTURBATION])
def test_a_text_alone_and_among_others(method: str) -> None:
    model, plan = tiny(), Randomisation()
    together = {record.key: record for record in all_of(model, [method], plan)}
    for number, text in enumerate(SENTENCES):
        for record in all_of(model, [method], plan, [text]):
            other = together[(*record.key[:-1], number)]
            assert (record.spearman, record.kendall) == pytest.approx((other.spearman, other.kendall), abs=1e-6)


def test_what_is_done_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model, plan, methods = tiny(), Randomisation(), ["saliency", "occlusion"]
    monkeypatch.setattr(randomisation, "CHUNK", 2)
    whole = list(similarities(model, list(SENTENCES), methods, SETTINGS, plan))
    everything = [record for unit in whole for record in unit]
    part = [record for unit in whole[:9] for record in unit]
    # And a text out of the middle of a unit.
    part.append(whole[-1][0])
    keys = {record.key for record in part}
    rest = list(similarities(model, list(SENTENCES), methods, SETTINGS, plan, done=keys))
    again = {record.key: record for unit in rest for record in unit}
    assert not keys & again.keys()
    assert again | {record.key: record for record in part} == {record.key: record for record in everything}

    asked: list[tuple[str, ...]] = []

    def watched(batch: object, method: Method) -> object:
        asked.append((label_of(method), *batch.encoding.texts))  # type: ignore[attr-defined]
        return scores_of(batch, method)  # type: ignore[arg-type]

    monkeypatch.setattr(randomisation, "scores_of", watched)
    left = [record for record in everything if (record.method, record.text) == ("occlusion", 2)]
    keys = {record.key for record in everything} - {left[0].key}
    (found,) = similarities(model, list(SENTENCES), methods, SETTINGS, plan, done=keys)
    assert found == [left[0]]
    assert asked == [("occlusion", SENTENCES[2])] * 2
    assert not list(similarities(model, list(SENTENCES), methods, SETTINGS, plan, done=keys | {left[0].key}))
    assert len(asked) == 2


def test_a_range_of_chunks_gives_what_all_texts_give(monkeypatch: pytest.MonkeyPatch) -> None:
    model, plan, methods = tiny(), Randomisation(), ["saliency", "occlusion"]
    monkeypatch.setattr(randomisation, "CHUNK", 2)
    whole = list(similarities(model, list(SENTENCES), methods, SETTINGS, plan))
    parts = [
        similarities(model, list(SENTENCES), methods, SETTINGS, plan, only=only) for only in (range(2), range(2, 3))
    ]
    assert [unit for part in parts for unit in part] == whole


def test_models_are_randomised_only_for_draws_that_miss_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def watched(model: Classifier, how: Any, seed: tuple[int, int]) -> RandomisedModels:
        made.append(seed)
        return RandomisedModels(model, how, seed)

    monkeypatch.setattr(randomisation, "RandomisedModels", watched)
    monkeypatch.setattr(randomisation, "CHUNK", 2)
    model, plan = tiny(), Randomisation(draws=3)
    everything = all_of(model, ["saliency"], plan)
    assert len(made) == 2 * 3
    made.clear()
    keys = {record.key for record in everything if record.draw != 1 or record.text != 2}
    found = list(similarities(model, list(SENTENCES), ["saliency"], SETTINGS, plan, done=keys))
    assert [record for unit in found for record in unit] == [r for r in everything if r.key not in keys]
    assert made == [(plan.seed, 1)]


def test_draws_differ_and_the_seed_decides() -> None:
    model = tiny()
    found = all_of(model, ["saliency"], Randomisation(draws=2))
    again = all_of(model, ["saliency"], Randomisation(draws=2))
    assert found == again
    values = [[r.spearman for r in found if r.draw == draw] for draw in (0, 1)]
    assert values[0] != values[1]
    assert [r.spearman for r in all_of(model, ["saliency"], Randomisation(seed=9))] != values[0]
    # The first of two draws is that of one.
    assert all_of(model, ["saliency"], Randomisation()) == [r for r in found if r.draw == 0]


def test_one_order_alone_and_named_targets() -> None:
    model = tiny()
    both = all_of(model, ["saliency"], Randomisation())
    for order in ("cascading", "independent"):
        alone = all_of(model, ["saliency"], Randomisation(orders=(order,)))
        assert alone == [record for record in both if record.order == order]
    settings = Settings(target=["neutral", "positive", "negative"])
    named = [r for u in similarities(model, list(SENTENCES), [GRADIENT], settings, Randomisation()) for r in u]
    (second,) = similarities(
        model,
        list(SENTENCES[1:2]),
        [GRADIENT],
        Settings(target="positive"),
        Randomisation(),
        done=_Except(named[1].key),
    )
    assert second[0].spearman == pytest.approx(named[1].spearman, abs=1e-6)


class _Except:
    """All keys but that of one unit of work."""

    def __init__(self, key: tuple[object, ...]) -> None:
        self._unit = key[:-1]

    def __contains__(self, key: object) -> bool:
        return key[:-1] != self._unit  # type: ignore[index]


def test_methods_that_say_nothing_of_parameters_are_named() -> None:
    model = tiny()
    found = without_parameters(model, SENTENCES, ["saliency", "random", "random(draws=3)", "occlusion"], SETTINGS)
    assert list(found) == ["random", "random(draws=3)"]
    assert "does not use the model" in found["random"]
    # A method that looks and does not care is scored; what it does shows.
    assert not without_parameters(model, SENTENCES, [Order()], SETTINGS)
    (reason,) = without_parameters(model, SENTENCES, [Idle()], SETTINGS).values()
    assert "does not use the model" in reason
    (reason,) = without_parameters(model, SENTENCES, [Taught()], SETTINGS).values()
    assert "trained for the original model" in reason


def test_bad_input() -> None:
    model = tiny()
    with pytest.raises(UnknownNameError, match="Did you mean 'cascading'"):
        Randomisation(orders=("cascade",))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="or both, each once"):
        Randomisation(orders=("cascading", "cascading"))
    with pytest.raises(InputError, match="or both, each once"):
        Randomisation(orders=())
    with pytest.raises(UnknownNameError, match="way to randomise"):
        Randomisation(how="initially")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="draws cannot be 0"):
        Randomisation(draws=0)
    for wrong in ({"draws": 1.5}, {"seed": "a"}):
        with pytest.raises(InputError, match="whole number"):
            Randomisation(**wrong)  # type: ignore[arg-type]
    for top in (0, 0.0, 1.5):
        with pytest.raises(InputError, match="share"):
            Randomisation(top=top)
    with pytest.raises(InputError, match="at least one text"):
        all_of(model, ["saliency"], Randomisation(), [])
    with pytest.raises(InputError, match="at least one name"):
        all_of(model, [], Randomisation())
    with pytest.raises(InputError, match="saliency is named twice"):
        all_of(model, ["saliency", "saliency"], Randomisation())
    with pytest.raises(InputError, match="2 targets for 3 texts"):
        list(similarities(model, list(SENTENCES), ["saliency"], Settings(target=[0, 1]), Randomisation()))
    with pytest.raises(UnsupportedError, match="does not work on"):
        all_of(model, ["sp_pi"], Randomisation())
    with pytest.raises(InputError, match="only transformers classifiers"):
        all_of("bert", ["saliency"], Randomisation())  # type: ignore[arg-type]
