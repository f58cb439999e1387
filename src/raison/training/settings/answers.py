"""How a language model is taught to answer from sources."""

from dataclasses import dataclass
from typing import Annotated

from raison.core.settings.fields import Setting, check
from raison.training.settings.classifier import MOST_SEED, HalfSetting, PeakSetting


@dataclass(frozen=True, slots=True)
class AnswersSettings:
    """How to train a model that answers by copying from sources.

    An epoch reads every paragraph of the training articles once, in groups of `fewest` to `most` passages with up to
    `questions` of their questions, and `planted` further readings about made-up facts for each of these. Adapters are
    on the projections of attention. `stop_after` cuts the run short, with the learning rate that it has then.
    """

    epochs: Annotated[int, Setting("Epochs over the paragraphs.", least=1)] = 2
    stop_after: Annotated[int | None, Setting("Stop after this many readings of the schedule.", least=1)] = None
    fewest: Annotated[int, Setting("Minimum number of passages per reading.", least=1)] = 3
    most: Annotated[int, Setting("Maximum number of passages per reading.", least=1)] = 8
    questions: Annotated[int, Setting("Maximum number of questions per reading.", least=1)] = 8
    planted: Annotated[float, Setting("Number of readings of made-up facts per other reading.", least=0, most=10)] = 0.4
    learning_rate: PeakSetting = 1e-3
    rank: Annotated[int, Setting("Rank of the adapters.", least=1)] = 8
    test_limit: Annotated[int, Setting("Held-out questions for each number of sources.", least=1)] = 60
    seed: Annotated[int, Setting("Seed of the new weights, the passages and their order.", least=0, most=MOST_SEED)] = 0
    half: HalfSetting = False
    checkpoint_every: int = 50
    progress: bool = True

    def __post_init__(self) -> None:
        check(self)
