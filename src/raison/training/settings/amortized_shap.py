"""How an attribution model learns Shapley values."""

from dataclasses import dataclass
from typing import Annotated

from raison.core.inputs.unit import Granularity
from raison.core.settings.fields import Setting, check
from raison.explaining.settings import OfSetting, RemovalSetting
from raison.training.settings.aml import BackboneSetting, RankSetting, TextsSetting, ValidationSetting
from raison.training.settings.classifier import MOST_SEED, BatchSetting, EpochsSetting, HalfSetting

ENCODER_RATE, LOW_RANK_RATE = 5e-5, 1e-3


@dataclass(frozen=True, slots=True)
class AmortizedShapSettings:
    """How to train an explainer that predicts Shapley values.

    The values of each text are estimated once, by `kernel_shap` with `samples` passes and its Gaussian process: those
    of every class, or of the predicted one and `classes` - 1 others drawn for the text. The best epoch by the mean
    correlation with the values of the validation texts is kept. `backbone` None is the explained model's own encoder,
    or MiniLM for a model that has none; `rank` None trains all of it. `removal` and `of` None are the model's defaults.
    """

    backbone: BackboneSetting = None
    rank: RankSetting = 16
    learning_rate: Annotated[
        float | None, Setting("Learning rate; 0.001, or 0.00005 with --rank 0.", above=0, options=("--lr",))
    ] = None
    samples: Annotated[int, Setting("Number of passes for estimating the values of a text.", least=4)] = 64
    classes: Annotated[int, Setting("Number of classes per text whose values are learned.", least=1)] = 6
    unit: Annotated[
        Granularity, Setting("Whose values are learned: token, word or sentence.", options=("--unit", "-u"))
    ] = "word"
    of: OfSetting = None
    removal: RemovalSetting = None
    texts: TextsSetting = 5000
    validation: ValidationSetting = 200
    epochs: EpochsSetting = 8
    batch_size: BatchSetting = 32
    seed: Annotated[
        int, Setting("Seed of the texts, their classes, the passes and the new weights.", least=0, most=MOST_SEED)
    ] = 0
    half: HalfSetting = False
    progress: bool = True

    def __post_init__(self) -> None:
        check(self)

    @property
    def rate(self) -> float:
        """The peak learning rate."""
        return self.learning_rate or (ENCODER_RATE if self.rank is None else LOW_RANK_RATE)
