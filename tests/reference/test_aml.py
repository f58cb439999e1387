"""AML against the paper's equations 1 to 7 and section 3.3, written out: one text at a time, in float64."""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import raison
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError
from raison.core.method import Cost
from raison.core.unit import Granularity
from raison.explaining.attribution import Batch as Prepared
from raison.explaining.attribution import Settings, prepare
from raison.masking.explainer import Explainer, find
from raison.masking.substitutes import Substitutes
from raison.methods.aml import Aml
from raison.models.adapters.classifier import Classifier
from raison.models.stack.layers import layer_stack
from raison.numerics.losses.attributive_masking import LossWeights
from raison.training.loop.objective import TrainingBatch
from raison.training.loop.trainer import TrainSettings, fit
from raison.training.objectives.attributive_masking import AttributiveMasking
from raison.training.recipes.masks import MaskedTexts
from tests.explainers import RATE, STATE, WEIGHTS, edit, maps_of, problem_of, untrained
from tests.tiny import build
from tests.toys import generators

ENCODERS = ("bert", "roberta", "distilbert")
TEXTS = (
    "a dull plot, but the ending is good",
    "a quiet film",
    "dull",
    "nobody believed the old sailor, and the music was terrible!",
    "It was brilliant.",
)
SEARCHED = LossWeights(**WEIGHTS)
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
TUNED = {"atol": 2e-4, "rtol": 0}
"""Of maps after steps: AdamW divides a gradient by its own size, rounding and all."""
State = dict[str, Tensor]


@dataclass(frozen=True)
class Literal:
    """The formulas for one model: a plain copy F of it, its encoder, and the explainer's file; all in float64."""

    model: torch.nn.Module
    backbone: torch.nn.Module
    state: State
    stands_in: int

    def map(self, state: State, ids: Tensor, y: Tensor) -> Tensor:
        """Equation 1, one score per token of G: the head on each last hidden state, z after the last token."""
        weights = {name: parameter.detach() for name, parameter in self.backbone.named_parameters()}
        for name in weights:
            changed = f"backbone.{name}"
            layer = changed.removesuffix(".weight")
            if changed in state:
                weights[name] = state[changed]
            elif f"{layer}.up" in state:
                weights[name] = weights[name] + state[f"{layer}.up"] @ state[f"{layer}.down"]
        table = weights[next(name for name in weights if name.endswith("word_embeddings.weight"))]
        z = state["prediction"] + sum(y[j] * state["labels"][j] for j in range(len(y)))
        embeds = torch.cat([table[ids], z[None]])[None]
        states = torch.func.functional_call(self.backbone, weights, kwargs={"inputs_embeds": embeds})[0][0, :-1]
        hidden = torch.tanh(states @ state["hidden.weight"].T + state["hidden.bias"])
        return torch.sigmoid(hidden @ state["output.weight"][0] + state["output.bias"])

    def probabilities(self, embeds: Tensor) -> Tensor:
        """F(x)."""
        return self.model(inputs_embeds=embeds[None]).logits[0].softmax(-1)

    def terms(self, ids: Tensor, owners: Tensor, a: Tensor, y: Tensor, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """L_p, L_inv and L_a of a map over units; `owners` are the tokens' units, -1 for those always visible."""
        table = self.model.get_input_embeddings().weight.detach()
        x, m = table[ids], table[self.stands_in]
        masked, inverse = [], []
        for token, unit in enumerate(owners.tolist()):
            share, rest = (1.0, 1.0) if unit < 0 else (a[unit], 1 - a[unit])
            masked.append(share * x[token] + (1 - share) * m)
            inverse.append(rest * x[token] + (1 - rest) * m)
        p, q = self.probabilities(torch.stack(masked)), self.probabilities(torch.stack(inverse))
        size = -sum(torch.log(1 - a[unit]) for unit in range(len(a))) / len(a)
        return -sum(y[j] * torch.log(p[j]) for j in range(len(y))), -torch.log(1 - q[index]), size

    def units(self, scores: Tensor, owners: Tensor) -> Tensor:
        """A unit's score is the greatest of its tokens'."""
        count = int(owners.max()) + 1
        return torch.stack([scores[owners == unit].max() for unit in range(count)])

    def tuned(self, trained: Sequence[str], text: "One", weights: LossWeights, steps: int) -> list[Tensor]:
        """Maps before each step of fine-tuning on a text and after the last; a linear decay to zero."""
        state = copy.deepcopy(self.state)
        optimizer = torch.optim.AdamW([state[n].requires_grad_() for n in trained], lr=RATE, weight_decay=0.01)
        decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / max(steps, 1))
        maps = []
        for _ in range(steps):
            a = self.units(self.map(state, text.ids, text.y), text.owners)
            maps.append(a.detach())
            p, inverse, size = self.terms(text.ids, text.owners, a, text.y, text.index)
            optimizer.zero_grad()
            (weights.prediction * p + weights.inverse * inverse + weights.size * size).backward()
            optimizer.step()
            decay.step()
        with torch.no_grad():
            return [*maps, self.units(self.map(state, text.ids, text.y), text.owners)]


@dataclass(frozen=True)
class One:
    """One text as the formulas see it: ids, the tokens' units, the probabilities to keep, the class to lose."""

    ids: Tensor
    owners: Tensor
    y: Tensor
    index: int


def one(literal: Literal, adapter: Classifier, text: str, unit: Granularity = "token", index: int | None = None) -> One:
    encoding = adapter.encode([text], unit)
    (ids,), (owners,) = encoding.input_ids, encoding.unit_ids
    with torch.no_grad():
        y = literal.probabilities(literal.model.get_input_embeddings().weight[ids])
    predicted = int(y.argmax())
    if index is None or index == predicted:
        return One(ids, owners, y, predicted)
    return One(ids, owners, torch.eye(len(y), dtype=y.dtype)[index], index)


def literal_of(adapter: Classifier, folder: Path) -> Literal:
    model = copy.deepcopy(adapter.model).double()
    state = {name: tensor.double() for name, tensor in load_file(folder / STATE).items()}
    return Literal(model, copy.deepcopy(model.base_model), state, adapter.tokenizer.mask_token_id)


def pair(name: str, folder: Path, rank: int | None = 2) -> tuple[Classifier, Literal]:
    """A tiny model with an explainer in the folder, and the formulas."""
    adapter = raison.load(*build(name))
    assert isinstance(adapter, Classifier)
    untrained(adapter, folder, rank=rank)
    return adapter, literal_of(adapter, folder)


@pytest.mark.parametrize("rank", [2, None])
@pytest.mark.parametrize("name", ENCODERS)
def test_without_steps_equals_equation_1(name, rank, tmp_path):
    adapter, literal = pair(name, tmp_path, rank)
    found = maps_of(problem_of(adapter, TEXTS), Aml(str(tmp_path)))
    effects = []
    for text, (scores,) in zip(TEXTS, found, strict=True):
        o = one(literal, adapter, text)
        with torch.no_grad():
            own = literal.map(literal.state, o.ids, o.y)
            expected = literal.units(own, o.owners)
            other = literal.units(literal.map(literal.state, o.ids, torch.eye(3).double()[o.y.argmin()]), o.owners)
        torch.testing.assert_close(scores, expected, **CLOSE)
        assert (own.max() - own.min()) > 1e-2, "a constant map would pass"
        effects.append(float((expected - other).abs().max()))
    assert max(effects) > 1e-3, "a map that does not see the prediction would pass"


@pytest.mark.parametrize("name", ENCODERS)
def test_a_word_has_the_greatest_score_of_its_tokens(name, tmp_path):
    adapter, literal = pair(name, tmp_path)
    problem = problem_of(adapter, TEXTS, "word")
    assert max(problem.encoding.unit_counts) < max(problem_of(adapter, TEXTS).encoding.unit_counts)
    for text, (scores,) in zip(TEXTS, maps_of(problem, Aml(str(tmp_path))), strict=True):
        o = one(literal, adapter, text, "word")
        with torch.no_grad():
            expected = literal.units(literal.map(literal.state, o.ids, o.y), o.owners)
        torch.testing.assert_close(scores, expected, **CLOSE)


def test_another_class_than_the_predicted_one_stands_alone(tmp_path):
    adapter, literal = pair("bert", tmp_path)
    for index, label in enumerate(adapter.classes):
        problem = problem_of(adapter, TEXTS, target=label)
        for text, (first, *_, last) in zip(TEXTS, maps_of(problem, Aml(str(tmp_path), steps=2)), strict=True):
            o = one(literal, adapter, text, index=index)
            expected = literal.tuned(tuned_names(adapter, tmp_path), o, SEARCHED, 2)
            torch.testing.assert_close(first, expected[0], **CLOSE)
            torch.testing.assert_close(last, expected[-1], **TUNED)


def training(adapter: Classifier, folder: Path, unit: Granularity = "token") -> tuple[MaskedTexts, Explainer, Prepared]:
    """The trainer's view of the explainer, without dropout."""
    explainer = find(adapter, str(folder), None)
    texts = prepare(adapter, TEXTS, Settings(unit=unit))
    substitutes = Substitutes.of(adapter, explainer.card.masking, None)
    return MaskedTexts(explainer.attributor, texts, substitutes, "max").eval(), explainer, texts


ABLATED = {
    "all": SEARCHED,
    "prediction only": LossWeights(1.0, 0.0, 0.0),
    "inverse only": LossWeights(0.0, 1.0, 0.0),
    "size beside one": LossWeights(0.3, 0.0, 2.0),
    "Xpred": replace(SEARCHED, prediction=0.0),
    "Xinv": replace(SEARCHED, inverse=0.0),
}


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("name", ENCODERS)
def test_the_losses_are_equations_4_to_7(name, unit, tmp_path):
    adapter, literal = pair(name, tmp_path)
    module, _, _ = training(adapter, tmp_path, unit)
    rows = torch.tensor([3, 0, 2, 4, 1])
    expected = []
    for row in rows:
        o = one(literal, adapter, TEXTS[row], unit)
        with torch.no_grad():
            a = literal.units(literal.map(literal.state, o.ids, o.y), o.owners)
            expected.append(torch.stack([*literal.terms(o.ids, o.owners, a, o.y, o.index), a.mean()]))
    p, inverse, size, l1 = torch.stack(expected).unbind(1)
    assert min(term.std() for term in (p, inverse, size, l1)) > 1e-3
    for weights in ABLATED.values():
        for kind, measured in (("cross_entropy", size), ("l1", l1)):
            total = weights.prediction * p + weights.inverse * inverse + weights.size * measured
            with torch.no_grad():
                found = module(rows, weights, kind)
                mean = AttributiveMasking(weights, kind).loss(module, TrainingBatch({"rows": rows}, rows))
            torch.testing.assert_close(found.double(), total, atol=2e-5, rtol=2e-5)
            assert mean.item() == pytest.approx(total.mean().item(), rel=2e-5)


class Once:
    """One batch."""

    def __init__(self, rows: Tensor) -> None:
        self.batch = TrainingBatch({"rows": rows}, rows)

    def __len__(self) -> int:
        return 1

    def epoch(self, number: int, start: int = 0) -> Iterator[TrainingBatch]:
        yield self.batch


@pytest.mark.parametrize("rank", [2, None])
@pytest.mark.parametrize("name", ENCODERS)
def test_gradients_reach_exactly_what_is_trained(name, rank, tmp_path):
    adapter, literal = pair(name, tmp_path, rank)
    module, explainer, _ = training(adapter, tmp_path)
    flags = [parameter.requires_grad for parameter in adapter.model.parameters()]
    rows = torch.tensor([0, 4, 1])
    for part in explainer.attributor.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    # So small a step moves nothing; the gradients that the trainer saw stay where they are.
    fit(TrainSettings(1, 1e-30, clip=math.inf, progress=False), module, Once(rows), AttributiveMasking(SEARCHED))
    state = {key: value.requires_grad_() for key, value in copy.deepcopy(literal.state).items()}
    total = torch.zeros((), dtype=torch.float64)
    for row in rows:
        o = one(literal, adapter, TEXTS[row])
        a = literal.units(literal.map(state, o.ids, o.y), o.owners)
        p, inverse, size = literal.terms(o.ids, o.owners, a, o.y, o.index)
        total = total + SEARCHED.prediction * p + SEARCHED.inverse * inverse + SEARCHED.size * size
    expected = dict(zip(state, torch.autograd.grad(total / len(rows), state.values(), allow_unused=True), strict=True))
    found = {key: parameter.grad for key, parameter in explainer.attributor.named_parameters()}
    assert {key for key, gradient in found.items() if gradient is not None} == {
        key for key, gradient in expected.items() if gradient is not None
    }
    unused = {key for key, gradient in expected.items() if gradient is None}
    # Of a whole backbone only the pooler has no part in a token's score.
    assert all("pooler" in key for key in unused)
    assert rank is None or not unused
    scale = max(float(gradient.abs().max()) for gradient in expected.values() if gradient is not None)
    for key, gradient in expected.items():
        if gradient is not None:
            torch.testing.assert_close(found[key].double() / scale, gradient / scale, atol=2e-5, rtol=1e-3)
            # A key's bias moves all of a token's attention alike, which softmax does not see.
            assert gradient.abs().max() / scale > 1e-7 or "key.bias" in key or "k_lin.bias" in key
    assert [parameter.requires_grad for parameter in adapter.model.parameters()] == flags
    assert all(parameter.grad is None for parameter in adapter.model.parameters())


def tuned_names(adapter: Classifier, folder: Path) -> list[str]:
    """What is fine-tuned: all of the file but the label embeddings."""
    return [name for name in load_file(folder / STATE) if name not in ("prediction", "labels", "substitute")]


@pytest.mark.parametrize("rank", [2, None])
@pytest.mark.parametrize("name", ENCODERS)
def test_fine_tuning_equals_the_plain_loop_on_each_text(name, rank, tmp_path):
    adapter, literal = pair(name, tmp_path, rank)
    explainer = find(adapter, str(tmp_path), None)
    before = copy.deepcopy(explainer.attributor.state_dict())
    assert set(explainer.attributor.tuned()) == set(tuned_names(adapter, tmp_path))
    texts = TEXTS if rank else TEXTS[:3]
    found = maps_of(problem_of(adapter, texts), Aml(str(tmp_path), steps=3))
    for text, maps in zip(texts, found, strict=True):
        o = one(literal, adapter, text)
        expected = torch.stack(literal.tuned(tuned_names(adapter, tmp_path), o, SEARCHED, 3))
        torch.testing.assert_close(maps, expected, **TUNED)
        assert (expected[0] - expected[-1]).abs().max() > 20 * TUNED["atol"], "a loop without steps would pass"
    after = explainer.attributor.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("weights", [{"prediction": 0.0, "inverse": 1.0, "size": 0.2}, WEIGHTS | {"inverse": 0.0}])
def test_fine_tuning_takes_the_weights_and_the_size_of_its_training(weights, tmp_path):
    adapter, _ = pair("bert", tmp_path)
    edit(tmp_path, lambda card: card["goals"]["comprehensiveness"].update(weights=weights))
    literal = literal_of(adapter, tmp_path)
    problem = problem_of(adapter, TEXTS[:1])
    (maps,) = maps_of(problem, Aml(str(tmp_path), steps=2))
    o = one(literal, adapter, TEXTS[0])
    expected = torch.stack(literal.tuned(tuned_names(adapter, tmp_path), o, LossWeights(**weights), 2))
    torch.testing.assert_close(maps, expected, **TUNED)
    # The pass of a loss that is left out is not made: 2 steps of G and one masked text, and a last pass of G.
    assert problem.ledger.evaluations == [5]
    assert problem.ledger.gradients == [4]


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("name", ENCODERS)
def test_tuning_together_changes_nothing(name, unit, tmp_path):
    adapter, _ = pair(name, tmp_path)
    method = Aml(str(tmp_path), steps=3)
    together = maps_of(problem_of(adapter, TEXTS, unit), method)
    adapter.budget.tokens = 20
    assert len(adapter.ask(Passes).batches(adapter.encode(TEXTS, unit))) > 1
    in_groups = maps_of(problem_of(adapter, TEXTS, unit), method)
    for text, maps, other in zip(TEXTS, together, in_groups, strict=True):
        (alone,) = maps_of(problem_of(adapter, [text], unit), method)
        torch.testing.assert_close(maps, alone, atol=1e-5, rtol=0)
        torch.testing.assert_close(other, alone, atol=1e-5, rtol=0)


def test_counts_its_passes_and_says_what_it_was_trained_for(tmp_path):
    adapter, _ = pair("bert", tmp_path)
    for steps in (0, 3):
        problem = problem_of(adapter, TEXTS[:2])
        method = Aml(str(tmp_path), steps=steps)
        maps = method.candidates(problem, generators(2))
        assert problem.ledger.evaluations == [1 + 3 * steps] * 2
        assert problem.ledger.gradients == [3 * steps] * 2
        assert method.cost(9) == Cost(1 + 3 * steps, 3 * steps)
        assert torch.equal(method.attribute(problem_of(adapter, TEXTS[:2]), generators(2)), maps[-1])
        assert problem.ledger.notes == [{"trained_for": "comprehensiveness"}] * 2


def test_works_under_inference_mode(tmp_path):
    adapter, _ = pair("bert", tmp_path)
    plain = raison.explain(adapter, TEXTS[0], Aml(str(tmp_path), steps=2))
    with torch.inference_mode():
        assert raison.explain(adapter, TEXTS[0], Aml(str(tmp_path), steps=2)).scores == plain.scores


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"steps": -1}, "steps of aml cannot be -1: give a whole number from 0 on"),
        ({"steps": True}, "steps of aml cannot be True"),
        ({"learning_rate": 0.0}, "learning_rate of aml cannot be 0.0: give a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate of aml cannot be nan"),
    ],
)
def test_refuses_settings_that_cannot_be(settings, said):
    with pytest.raises(InputError) as caught:
        Aml(**settings)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_out_of_memory_changes_no_map_of_a_training(tmp_path):
    """Layers that take two rows at most: a text's two masked versions."""
    adapter, _ = pair("bert", tmp_path)
    module, _, _ = training(adapter, tmp_path)
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    rows = torch.arange(len(TEXTS))
    shares, losses = module.shares(), fit_losses(module, rows)
    failed: list[int] = []

    def limited(_layer, args, kwargs):
        found = len(args[0] if args else kwargs["hidden_states"])
        if found > 2:
            failed.append(found)
            raise torch.OutOfMemoryError("no room")

    stacks = (layer_stack(adapter.core), layer_stack(module.attributor.backbone))
    hooks = [layer.register_forward_pre_hook(limited, with_kwargs=True) for stack in stacks for layer in stack]
    found = module.shares()
    assert failed
    failed.clear()
    assert fit_losses(module, rows) == pytest.approx(losses, abs=1e-5)
    assert failed
    for hook in hooks:
        hook.remove()
    torch.testing.assert_close(found, shares, rtol=1e-4, atol=1e-5)


def fit_losses(module: MaskedTexts, rows: torch.Tensor) -> tuple[float, ...]:
    """The losses of two steps at a rate that changes no weight, on all texts at once."""

    class Whole:
        def __len__(self):
            return 1

        def epoch(self, number, start):
            yield TrainingBatch({"rows": rows}, rows)

    plan = TrainSettings(epochs=2, learning_rate=1e-12, warmup=0.0, progress=False)
    return fit(plan, module, Whole(), AttributiveMasking(SEARCHED)).losses
