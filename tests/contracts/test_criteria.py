"""The contract of a criterion, for every file of the catalogue: gradients, training, reloading, its score."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import raison
from raison.core.capabilities.passes import Passes
from raison.core.registry import name_of
from raison.models.derived.attention_explainer import Design
from raison.numerics.attention.interpretable import NORMS
from raison.numerics.losses.interpretability import cross_entropy
from raison.training.recipes import ivra
from raison.training.recipes.ivra import train_ivra
from raison.training.self_explaining.criterion import CRITERIA, Criterion, Simulated, TrainingStep
from raison.training.self_explaining.reading import SelfExplaining
from raison.training.self_explaining.simulation import SimulationPlan
from raison.training.self_explaining.texts import LOSS, TaughtTexts
from raison.training.settings.ivra import IvraSettings
from tests.attention_explainers import map_of
from tests.conftest import ALL
from tests.explainers import saved_encoder
from tests.taught import DATA, LABELS, TEXTS, coefficients, design_of, taught
from tests.tiny import TINY

ROWS = [0, 2, 5, 8, 9, 11]
STEP = 1e-4
SEED = 4
SMOOTH = {"softmax": None, "sparsemax": (2.0, 2.0)}
"""Starts from which small steps bring no token above zero or back: sparsemax has kinks there."""


KINDS = ("clustering", "comprehensiveness", "simulatability")
"""Criteria that read states, that remove tokens, and that teach a student: what a training needs for them differs."""


@pytest.fixture(params=CRITERIA.names)
def criterion(request: pytest.FixtureRequest) -> Criterion:
    return CRITERIA.create(request.param)


def loss_of(module: TaughtTexts, criterion: Criterion) -> Tensor:
    return step_of(module, criterion)[1]


def step_of(module: TaughtTexts, criterion: Criterion) -> tuple[TrainingStep, Tensor]:
    """A step and its loss in training, always with the same draws and the student of the beginning."""
    student = None if module.simulation is None else copy.deepcopy(module.simulation.state_dict())
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        step = module.step(ROWS)
        loss = criterion.loss(step)
    if student is not None:
        module.simulation.load_state_dict(student)
    return step, loss


class Kept:
    """Stands in for what a pass over mixed embeddings is asked: notes it, or gives back what lies on its tangent.

    The choice of tokens is a step function of the explanation, whose gradient the losses define as that of a straight
    line: keep(r) = keep(r0) + slope x (r - r0), tokens apart from one another. Differences are taken along this line.
    """

    def __init__(self, plain: object) -> None:
        self._plain = plain
        self._lines: list[tuple[Tensor, Tensor, Tensor]] = []
        self._place: int | None = None

    def __call__(self, network: SelfExplaining, encoding: object, keep: Tensor) -> Tensor:
        shares = self.shares
        if self._place is None:
            slope = torch.zeros_like(keep)
            if keep.requires_grad:
                slope = torch.autograd.grad(keep.sum(), shares, retain_graph=True)[0]
            self._lines.append((keep.detach(), slope, shares.detach()))
            return self._plain(network, encoding, keep)
        value, slope, at = self._lines[self._place]
        self._place += 1
        return self._plain(network, encoding, value + slope * (shares - at))

    def follow(self) -> None:
        """From now on, along the tangents."""
        self._place = 0


def tangents(monkeypatch: pytest.MonkeyPatch) -> Kept:
    kept, forward = Kept(SelfExplaining.kept), SelfExplaining.forward

    def noting(network: SelfExplaining, *arguments: object) -> object:
        read = forward(network, *arguments)
        kept.shares = read.shares
        return read

    monkeypatch.setattr(SelfExplaining, "forward", noting)
    monkeypatch.setattr(SelfExplaining, "kept", lambda network, encoding, keep: kept(network, encoding, keep))
    return kept


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("norm", NORMS)
def test_gradients_agree_with_differences_and_reach_every_coefficient(
    criterion: Criterion, norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = taught((criterion,), design_of(norm, initial=SMOOTH[norm])).train()
    kept = tangents(monkeypatch)
    named = coefficients(module.network)
    slopes = dict(zip(named, torch.autograd.grad(loss_of(module, criterion), list(named.values())), strict=True))
    generator = torch.Generator().manual_seed(7)
    for name, parameter in named.items():
        assert slopes[name].abs().max() > 0, name
        along = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        # Towards where it grows, so that rounding has no say.
        along = along * (along * slopes[name]).sign()
        ends = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter.add_(sign * STEP * along)
            kept.follow()
            ends.append(float(loss_of(module, criterion).detach()))
            with torch.no_grad():
                parameter.sub_(sign * STEP * along)
        found = float((slopes[name] * along).sum())
        assert found == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=2e-3, abs=1e-7), name


@pytest.mark.parametrize("norm", NORMS)
def test_a_detached_choice_reaches_the_model_alone(criterion: Criterion, norm: str) -> None:
    if "detached" not in {field.name for field in fields(criterion)}:
        pytest.skip("has no such setting")
    module = taught((criterion,), design_of(norm)).train()
    detached = loss_of(module, replace(criterion, detached=True))
    assert float(detached.detach()) == pytest.approx(float(loss_of(module, criterion).detach()), rel=1e-9)
    named = coefficients(module.network)
    assert torch.autograd.grad(detached, list(named.values()), allow_unused=True, retain_graph=True) == (None,) * 4
    weights = [p for p in module.network.core.parameters() if p.requires_grad]
    slopes = torch.autograd.grad(detached, weights, allow_unused=True)
    assert sum(float(slope.abs().sum()) for slope in slopes if slope is not None) > 0


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("norm", NORMS)
def test_a_few_steps_make_the_loss_fall(criterion: Criterion, norm: str) -> None:
    """With the task's loss beside it, as always: alone it may turn the prediction, on which it is defined.

    On one batch with the same draws, the student of simulatability at its beginning every time.
    """
    module = taught((criterion,), design_of(norm), plan=SimulationPlan(learning_rate=0.1, batch_size=4)).train()
    said = module.step(ROWS).predicted
    explaining = list(coefficients(module.network).values())
    learned = [parameter for parameter in module.network.core.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam([{"params": learned, "lr": 2.4e-3}, {"params": explaining, "lr": 2.4e-2}])
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        step, loss = step_of(module, criterion)
        (loss + cross_entropy(step.decisions, said).mean()).backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("criterion", CRITERIA.names if ALL else KINDS, indirect=True)
def test_a_saved_explainer_gives_the_same_scores(
    criterion: Criterion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    networks: list[SelfExplaining] = []

    def noting(network: SelfExplaining, *arguments: object) -> TaughtTexts:
        networks.append(network)
        return TaughtTexts(network, *arguments)

    monkeypatch.setattr(ivra, "TaughtTexts", noting)
    settings = IvraSettings(
        criteria=(name_of(criterion),),
        epochs=1,
        batch_size=4,
        learning_rate=1e-3,
        student=saved_encoder(tmp_path / "student", "electra"),
        student_share=0.5,
        student_batch=2,
        progress=False,
    )
    few = replace(DATA, rows=DATA.rows[:8])
    card = train_ivra(raison.load(*TINY["bert"]()), few, tmp_path / "out", settings, few)
    assert card.criteria == (name_of(criterion),)
    (network,) = networks
    loaded = raison.load(str(tmp_path / "out"))
    encoding = network.model.encode(TEXTS, "token")
    expected = encoding.sum_to_units(map_of(network.model, encoding, network.explainer, Design()))
    for explanation, shares in zip(raison.explain(loaded, list(TEXTS), "ivra", unit="token"), expected, strict=True):
        assert explanation.scores == pytest.approx(shares[: len(explanation.units)].tolist(), abs=1e-5)
    torch.testing.assert_close(
        loaded.ask(Passes).logits(encoding), network.model.ask(Passes).logits(encoding), rtol=1e-4, atol=1e-5
    )


# A batch of which it is known what matters


READER = raison.load(*TINY["bert"]())
PLACES = (1, 1, 3, 3)
"""The token that decides, of each of four texts of four tokens."""
WRONG = (2, 4, 2, 4)


@dataclass
class Planted:
    """Implements TrainingStep: what is said hangs on one token of each text, of which the states tell, too."""

    shares: Tensor
    training: bool = False

    def __post_init__(self) -> None:
        self.encoding = READER.encode(["a a a a"] * 4, "token")
        self.scored = self.explained = self.encoding.scored
        self.labels = torch.tensor([[0], [0], [1], [1]])
        self.predicted = torch.ones(4, 1, dtype=torch.long)
        self.decisions = self.kept(torch.ones_like(self.shares))
        self.states = torch.zeros(4, 6, 2, dtype=torch.float64)
        for text, place in enumerate(PLACES):
            self.states[text, place] = torch.tensor([1.0 + 0.1 * text, 0.3])

    def kept(self, keep: Tensor) -> Tensor:
        there = torch.stack([keep[text, place] for text, place in enumerate(PLACES)])
        return torch.stack([torch.zeros_like(there), 4 * there - 2], 1)[:, None]

    def portions(self, shares: Sequence[float]) -> list[Tensor]:
        return [torch.full((4,), share, dtype=torch.float64) for share in shares]

    def simulate(self, weight: float, smoothing: float) -> Simulated:
        there = torch.stack([self.shares[text, place] for text, place in enumerate(PLACES)])
        return Simulated(-there.log().mean(), there > 0.5)


def planted(places: Sequence[int]) -> Planted:
    shares = torch.full((4, 6), 0.02, dtype=torch.float64)
    shares[:, [0, 5]] = 0
    for text, place in enumerate(places):
        shares[text, place] = 0.94 - 0.001 * text
    return Planted(shares / shares.sum(1, keepdim=True))


def test_scores_are_in_range_and_higher_is_better(criterion: Criterion) -> None:
    good, bad = (criterion.score(planted(places)) for places in (PLACES, WRONG))
    assert good
    assert len(good) == len(bad)
    assert all(-1 <= score <= 1 for score in (*good, *bad))
    assert np.mean(good) > np.mean(bad) + 0.1


def test_the_better_explanation_has_the_smaller_loss(criterion: Criterion) -> None:
    good, bad = (float(criterion.loss(planted(places))) for places in (PLACES, WRONG))
    assert good < bad


def test_a_batch_that_is_not_learned_from_gives_every_text_a_score(criterion: Criterion) -> None:
    module = taught((criterion,), Design(), dtype=torch.float32).eval()
    with torch.no_grad():
        scores, state = module.scores((criterion,), 5), torch.get_rng_state()
        again = module.scores((criterion,), 5)
    assert scores == again
    assert torch.equal(torch.get_rng_state(), state)
    assert set(scores) == {"criteria", "accuracy", name_of(criterion), LOSS + name_of(criterion)}
    assert scores["criteria"] == scores[name_of(criterion)]
    assert -1 <= scores["criteria"] <= 1
    said = module.network.model.ask(Passes).predicted(module.network.model.encode(TEXTS, "token"))[:, 0].tolist()
    assert scores["accuracy"] == pytest.approx(np.mean([a == b for a, b in zip(said, LABELS, strict=True)]))
