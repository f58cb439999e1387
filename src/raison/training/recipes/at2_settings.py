"""How the weights of attention heads are learned (AT2)."""

from dataclasses import dataclass
from typing import Annotated

from raison.core.settings.fields import Setting, check
from raison.training.recipes.classifier_settings import PeakSetting


@dataclass(frozen=True, slots=True)
class At2Settings:
    """How to learn the weights of attention heads from ablations. Steps and rate are those of the published code.

    Of `questions` questions the last `held_out` are not learned from: the card has the correlation on them. Without
    data, questions are SQuAD's, each with `others` other passages of at most `sentences` sentences.
    """

    questions: Annotated[int, Setting("Questions, held-out ones included.", least=2)] = 120
    held_out: Annotated[int, Setting("Questions that are not learned from.", least=1)] = 20
    ablations: Annotated[int, Setting("Random removals of sources for each question.", least=2)] = 32
    others: Annotated[int, Setting("Other passages beside that of the answer, for SQuAD.", least=1)] = 4
    sentences: Annotated[int, Setting("Sentences of a passage, at most, for SQuAD.", least=1)] = 2
    steps: Annotated[int, Setting("Steps of gradient descent.", least=1)] = 1000
    learning_rate: PeakSetting = 1e-3
    seed: Annotated[int, Setting("Seed of the questions and of the removals.")] = 0
    progress: bool = True

    def __post_init__(self) -> None:
        check(self)
