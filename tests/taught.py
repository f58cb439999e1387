"""Tiny models that learn to explain themselves, with a dozen invented texts and a student."""

from collections.abc import Sequence

import torch

import raison
from raison.data import Dataset, Row
from raison.models.adapters.classifier import Classifier
from raison.models.derived.attention_explainer import Design
from raison.training.self_explaining.criterion import Criterion
from raison.training.self_explaining.reading import Labelled, SelfExplaining
from raison.training.self_explaining.simulation import Lessons, Simulation, SimulationPlan
from raison.training.self_explaining.texts import TaughtTexts
from tests.attention_explainers import Explainer, random_explainer
from tests.tiny import TINY

TEXTS = (
    "a dull plot, but the ending is good",
    "a quiet film",
    "nobody believed the old sailor, and the music was terrible!",
    "the actors are brilliant",
    "boring and slow, weak jokes",
    "a wonderful story about the sea",
    "it was bad",
    "the rain did not stop, not at all",
    "I love this so much",
    "a modest pleasure",
    "the plot is thin and the music is loud",
    "walked home through the rain, happy",
)
LABELS = (1, 1, 0, 2, 0, 2, 0, 0, 2, 1, 0, 2)
NAMES = ("negative", "neutral", "positive")
"""Of the tiny models' classes, in order."""
DATA = Dataset(
    "invented",
    tuple(Row(text, NAMES[label], number) for number, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))),
    sha256="abc",
)


def design_of(norm: str, over: str = "units", initial: tuple[float, float] | None = None) -> Design:
    """An explainer's, with the usual start unless another is given."""
    return Design("ivra", norm, over=over, initial=initial)


def trainable(adapter: Classifier, dtype: torch.dtype = torch.float64) -> Classifier:
    """Everything but the word embeddings learns."""
    adapter.core.to(dtype).requires_grad_(True)
    adapter.core.get_input_embeddings().requires_grad_(False)
    return adapter


def network_of(
    adapter: Classifier, texts: Sequence[object], design: Design, dtype: torch.dtype = torch.float64, seed: int = 3
) -> SelfExplaining:
    """A model and an explainer of random coefficients, all of which learn."""
    explainer: Explainer = random_explainer(adapter, adapter.encode(list(texts), "token"), design, seed)
    return SelfExplaining(trainable(adapter, dtype), explainer.to(dtype).requires_grad_(True), design.over)


def simulation_of(network: SelfExplaining, student: Classifier, design: Design, plan: SimulationPlan) -> Simulation:
    """A student of the tiny family `student` that learns from all texts."""
    read = network.model.encode(TEXTS, "token")
    shown = student.encode(TEXTS, "token", True)
    skeleton = network_of(student, TEXTS, design, next(network.core.parameters()).dtype, seed=8)
    return Simulation(skeleton, Lessons.of(read, shown), network, plan)


def taught(
    criteria: Sequence[Criterion],
    design: Design,
    *,
    name: str = "bert",
    dtype: torch.dtype = torch.float64,
    plan: SimulationPlan | None = None,
) -> TaughtTexts:
    """The dozen texts to learn from and to judge by, with what the criteria need."""
    network = network_of(raison.load(*TINY[name]()), TEXTS, design, dtype)
    texts = Labelled(network.model.encode(TEXTS, "token"), torch.tensor(LABELS)[:, None])
    student = None
    if any(criterion.trains_student for criterion in criteria):
        student = simulation_of(network, raison.load(*TINY["electra"]()), design, plan or SimulationPlan(batch_size=4))
    module = TaughtTexts(network, texts, texts, student)
    module.states = any(criterion.reads_states for criterion in criteria)
    return module


def coefficients(network: SelfExplaining) -> dict[str, torch.nn.Parameter]:
    """The explainer's, by name."""
    return dict(network.explainer.named_parameters())
