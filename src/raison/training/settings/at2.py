"""How the weights of attention heads are learned (AT2)."""

from dataclasses import dataclass
from typing import Annotated

from raison.core.settings.fields import Setting, check
from raison.training.settings.classifier import MOST_SEED, PeakSetting


@dataclass(frozen=True, slots=True)
class At2Settings:
    """How to learn the weights of attention heads from ablations. Steps and rate are those of the published code.

    The last `held_out` of `questions` questions are not used for learning: the card has the correlation on them.
    Without data, the questions are SQuAD's, each with `others` other passages of at most `sentences` sentences.
    """

    questions: Annotated[int, Setting("Number of questions, including held-out ones.", least=2)] = 120
    held_out: Annotated[int, Setting("Number of held-out questions.", least=1)] = 20
    ablations: Annotated[int, Setting("Random removals of sources per question.", least=2)] = 32
    others: Annotated[int, Setting("Number of passages besides that of the answer, for SQuAD.", least=1)] = 4
    sentences: Annotated[int, Setting("Maximum number of sentences per passage, for SQuAD.", least=1)] = 2
    steps: Annotated[int, Setting("Steps of gradient descent.", least=1)] = 1000
    learning_rate: PeakSetting = 1e-3
    seed: Annotated[int, Setting("Seed of the questions and of the removals.", least=0, most=MOST_SEED)] = 0
    progress: bool = True

    def __post_init__(self) -> None:
        check(self)
