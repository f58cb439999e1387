"""Simulatability's two levels: the gradient through the student's step against plain double backpropagation."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

import raison
from raison.core.inputs.encoding import Encoding
from raison.numerics.attention.interpretable import NORMS
from raison.training.loop.checkpoint import trainable_state
from raison.training.self_explaining.reading import ReaderOutput, SelfExplaining
from raison.training.self_explaining.simulation import Imitation, Lessons, Simulation, SimulationPlan, chosen_rows
from tests.taught import TEXTS, design_of, network_of, simulation_of
from tests.tiny import TINY

PLAN = SimulationPlan(learning_rate=0.3, batch_size=5)
CLOSE = {"rtol": 1e-4, "atol": 1e-7}
"""Queries and keys pass through single precision on their way into an explanation."""


def start(
    norm: str, student: str = "bert", plan: SimulationPlan = PLAN, over: str = "units"
) -> tuple[SelfExplaining, Simulation]:
    design = design_of(norm, over)
    network = network_of(raison.load(*TINY["bert"]()), TEXTS, design)
    return network, simulation_of(network, raison.load(*TINY[student]()), design, plan)


def drawn(seed: int) -> list[int]:
    """The texts that a step draws after torch.manual_seed(seed)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(len(TEXTS), (PLAN.batch_size,), generator=generator).tolist()


def learn(simulation: Simulation, seed: int, weight: float = 1.0, smoothing: float = 0.05) -> tuple[Tensor, Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        found = simulation.learn(Imitation(weight, smoothing))
    return found.loss, found.agreed


# Equation 7, written out


def spread(shares: Tensor, model: Encoding, student: Encoding) -> list[Tensor]:
    """An explanation of one text on the student's tokens: each token's mass in equal parts to those it overlaps."""
    found = [torch.zeros((), dtype=shares.dtype) for _ in range(student.lengths[0])]
    for token, unit in enumerate(model.unit_ids[0].tolist()):
        if unit < 0:
            continue
        own = model.units[0][unit]
        hit = [
            position
            for position, other in enumerate(student.unit_ids[0].tolist())
            if other >= 0
            and student.units[0][other].segment == own.segment
            and student.units[0][other].start < own.end
            and own.start < student.units[0][other].end
        ]
        for position in hit:
            found[position] = found[position] + shares[token] / len(hit)
    return found


def on_own_tokens(values: list[Tensor], student: Encoding, smoothing: float) -> list[Tensor]:
    own = [value for value, unit in zip(values, student.unit_ids[0].tolist(), strict=False) if unit >= 0]
    total = sum(own)
    if not total:
        # Nothing of it lies on the text.
        own, total = [torch.ones_like(value) for value in own], len(own)
    return [(1 - smoothing) * value / total + smoothing / len(own) for value in own]


def equation_7(
    skeleton: SelfExplaining,
    weights: Mapping[str, Tensor],
    taught: list[ReaderOutput],
    rows: list[int],
    settings: tuple[float, float],
) -> Tensor:
    """One text at a time."""
    weight, smoothing = settings
    losses = []
    for said, row in zip(taught, rows, strict=True):
        read = network_encoding(skeleton, row)
        answered = functional_call(skeleton, dict(weights), (read,))
        chosen = int(said.decisions[0, 0].argmax())
        losses.append(-answered.decisions[0, 0].log_softmax(-1)[chosen])
        shown = on_own_tokens(spread(said.shares[0], MODELS.encode([TEXTS[row]], "token"), read), read, smoothing)
        own = on_own_tokens(list(answered.shares[0]), read, smoothing)
        losses[-1] = losses[-1] + weight * sum(s * (s.log() - r.log()) for s, r in zip(shown, own, strict=True))
    return torch.stack(losses).mean()


def network_encoding(skeleton: SelfExplaining, row: int) -> Encoding:
    return skeleton.model.encode([TEXTS[row]], "token", True)


MODELS = raison.load(*TINY["bert"]())
"""Reads texts as the models that are trained here do."""


def alone(network: SelfExplaining, rows: list[int]) -> list[ReaderOutput]:
    return [network(network.model.encode([TEXTS[row]], "token")) for row in rows]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    ("norm", "student", "over"),
    [("softmax", "bert", "units"), ("sparsemax", "bert", "units"), ("sparsemax", "roberta", "tokens")],
)
def test_the_gradient_is_that_of_double_backpropagation(norm: str, student: str, over: str) -> None:
    network, simulation = start(norm, student, over=over)
    skeleton = simulation.skeleton
    weights = {name: value.clone().requires_grad_() for name, value in simulation.weights.items()}
    rows, settings = drawn(0), (0.7, 0.05)
    taught = alone(network, rows)
    fixed = [ReaderOutput(one.decisions.detach(), one.shares) for one in taught]
    inner = equation_7(skeleton, weights, fixed, rows, settings)
    slopes = torch.autograd.grad(inner, list(weights.values()), create_graph=True, allow_unused=True)
    updated = {
        name: value if slope is None else value - PLAN.learning_rate * slope
        for (name, value), slope in zip(weights.items(), slopes, strict=True)
    }
    outer = equation_7(skeleton, updated, fixed, rows, settings)
    wanted = dict(network.named_parameters())
    trained = {name: value for name, value in wanted.items() if value.requires_grad}
    expected = torch.autograd.grad(outer, list(trained.values()), allow_unused=True, retain_graph=True)
    direct = equation_7(skeleton, {k: v.detach() for k, v in updated.items()}, fixed, rows, settings)
    first_only = torch.autograd.grad(direct, list(trained.values()), allow_unused=True)

    loss, agreed = learn(simulation, 0, *settings)
    found = torch.autograd.grad(loss, list(trained.values()), allow_unused=True)
    assert loss.item() == pytest.approx(outer.item(), rel=1e-6)
    assert agreed.shape == (PLAN.batch_size,)
    moved = 0.0
    for name, one, other, without in zip(trained, found, expected, first_only, strict=True):
        assert (one is None) == (other is None), name
        if one is not None:
            scale = float(other.abs().max()) + 1e-12
            torch.testing.assert_close(
                one / scale, other / scale, rtol=1e-3, atol=1e-4, msg=lambda m, n=name: f"{n}: {m}"
            )
            moved = max(moved, float((other - without).abs().max()) / scale)
    # What passes through the student's step is a part that counts.
    assert moved > 0.01
    for name in ("query", "key", "heads", "layers"):
        assert dict(zip(trained, found, strict=True))[f"explainer.{name}"].abs().sum() > 0
    for name, value in simulation.weights.items():
        torch.testing.assert_close(value, updated[name].detach(), **CLOSE)


@pytest.mark.parametrize("norm", NORMS)
def test_with_roll_back_the_student_learns_from_the_updated_model(norm: str) -> None:
    network, simulation = start(norm, plan=replace(PLAN, roll_back=True))
    skeleton = simulation.skeleton
    settings = (1.0, 0.05)
    before = {name: value.clone() for name, value in simulation.weights.items()}
    learn(simulation, 1, *settings)
    assert all(torch.equal(value, before[name]) for name, value in simulation.weights.items())
    assert simulation.pending.tolist() == drawn(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1.05)
        taught = alone(network, drawn(1))
    weights = {name: value.clone().requires_grad_() for name, value in before.items()}
    loss = equation_7(skeleton, weights, taught, drawn(1), settings)
    slopes = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
    learn(simulation, 2, *settings)
    assert simulation.pending.tolist() == drawn(2)
    changed = 0
    for (name, value), slope in zip(simulation.weights.items(), slopes, strict=True):
        step = 0 if slope is None else PLAN.learning_rate * slope
        torch.testing.assert_close(value, before[name] - step, **CLOSE)
        changed += not torch.equal(value, before[name])
    assert changed > 10


def test_the_student_is_saved_but_no_parameter_and_changes_by_its_own_steps_alone() -> None:
    network, simulation = start("softmax")
    skeleton = simulation.skeleton
    own = {name: value.detach().clone() for name, value in skeleton.named_parameters()}
    before = {name: value.clone() for name, value in simulation.weights.items()}
    assert list(simulation.parameters()) == []
    saved = trainable_state(simulation)
    # The student's weights and what is pending; neither the skeleton's nor the model's.
    assert len(saved) == len(before) + 1
    assert set(before) == {name for name, value in skeleton.named_parameters() if value.requires_grad}
    simulation.judge(
        network.model.encode(TEXTS, "token"), network(network.model.encode(TEXTS, "token")), Imitation(1.0, 0.01)
    )
    assert all(torch.equal(value, before[name]) for name, value in simulation.weights.items())
    loss, _ = learn(simulation, 3)
    assert any(not torch.equal(value, before[name]) for name, value in simulation.weights.items())
    after = {name: value.clone() for name, value in simulation.weights.items()}
    loss.backward()
    assert all(torch.equal(value, after[name]) for name, value in simulation.weights.items())
    assert all(torch.equal(value, own[name]) for name, value in skeleton.named_parameters())
    assert all(parameter.grad is None for parameter in skeleton.parameters())
    simulation.load_state_dict(saved)
    assert all(torch.equal(value, before[name]) for name, value in simulation.weights.items())


def test_judging_is_equation_7_of_other_texts_and_learns_and_draws_nothing() -> None:
    network, simulation = start("sparsemax", "roberta")
    skeleton = simulation.skeleton
    rows = [2, 5, 7]
    encoding = network.model.encode([TEXTS[row] for row in rows], "token")
    state = torch.get_rng_state()
    with torch.no_grad():
        taught = network(encoding)
        found = simulation.judge(encoding, taught, Imitation(0.5, 0.02))
        expected = equation_7(skeleton, simulation.weights, alone(network, rows), rows, (0.5, 0.02))
        said = [int(one.decisions[0, 0].argmax()) for one in alone(network, rows)]
        answers = [functional_call(skeleton, simulation.weights, (network_encoding(skeleton, row),)) for row in rows]
    assert found.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert found.agreed.tolist() == [int(a.decisions[0, 0].argmax()) == s for a, s in zip(answers, said, strict=True)]
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("student", ["bert", "distilbert", "roberta", "llama"])
def test_what_is_shown_keeps_its_mass(student: str) -> None:
    reader, other = raison.load(*TINY["bert"]()), raison.load(*TINY[student]())
    read, shown = reader.encode(TEXTS, "token"), other.encode(TEXTS, "token", True)
    lessons = Lessons.of(read, shown)
    shares = torch.rand(read.input_ids.shape, generator=torch.Generator().manual_seed(0)) * read.scored
    shares = shares / shares.sum(1, keepdim=True)
    found = lessons.shown(shares)
    assert found.shape == shown.input_ids.shape
    assert found.sum(1).tolist() == pytest.approx([1] * len(TEXTS), abs=1e-5)
    assert not found[~shown.scored].any()
    for row in range(len(TEXTS)):
        single = spread(shares[row], read.select([row]), shown.select([row]))
        assert found[row, : len(single)].tolist() == pytest.approx([float(value) for value in single], abs=1e-6)
    part = lessons.select([4, 1])
    torch.testing.assert_close(part.shown(shares[[4, 1]]), found[[4, 1]][:, : part.student.input_ids.shape[1]])


def test_mass_on_what_the_student_cuts_off_is_lost() -> None:
    reader, (model, tokenizer) = raison.load(*TINY["bert"]()), TINY["roberta"]()
    tokenizer.model_max_length = 8
    other = raison.load(model, tokenizer)
    read, shown = reader.encode(TEXTS[:1], "token"), other.encode(TEXTS[:1], "token", True)
    shares = read.scored.double() / read.scored.sum()
    found = Lessons.of(read, shown).shown(shares)
    last = max(unit.end for unit in shown.units[0])
    kept = sum(
        float(shares[0, t]) for t, u in enumerate(read.unit_ids[0].tolist()) if u >= 0 and read.units[0][u].start < last
    )
    assert 0 < kept < 0.9
    assert float(found.sum()) == pytest.approx(kept, abs=1e-6)


def test_an_explanation_of_special_tokens_alone_shows_every_token_equally() -> None:
    network, simulation = start("softmax", over="tokens")
    encoding = network.model.encode(TEXTS[:1], "token")
    shares = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
    shares[0, 0] = 1.0
    read = network(encoding)
    skeleton = simulation.skeleton
    with torch.no_grad():
        found = simulation.judge(encoding, ReaderOutput(read.decisions, shares), Imitation(1.0, 0.0)).loss.item()
        answered = functional_call(skeleton, simulation.weights, (network_encoding(skeleton, 0),))
        said = int(read.decisions[0, 0].argmax())
        own = on_own_tokens(list(answered.shares[0]), network_encoding(skeleton, 0), 0.0)
    apart = math.fsum(math.log(1 / len(own) / float(share)) / len(own) for share in own)
    assert found == pytest.approx(apart - float(answered.decisions[0, 0].log_softmax(-1)[said]), rel=1e-5)


def test_the_student_s_share_of_the_texts() -> None:
    assert chosen_rows(10, 0.2, 0).tolist() == chosen_rows(10, 0.2, 0).tolist()
    assert chosen_rows(10, 0.2, 0).tolist() != chosen_rows(10, 0.2, 1).tolist()
    for count, share, expected in ((10, 0.2, 2), (10, 0.01, 1), (10, 1.0, 10), (7, 0.5, 4)):
        rows = chosen_rows(count, share, 3).tolist()
        assert len(set(rows)) == len(rows) == expected
        assert rows == sorted(rows)
        assert set(rows) <= set(range(count))
