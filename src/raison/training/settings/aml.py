"""How an explainer is trained by attributive masking."""

from dataclasses import dataclass
from typing import Annotated, Literal

from raison.core.inputs.unit import Granularity, Merge
from raison.core.settings.fields import Setting, check
from raison.numerics.losses.loss_weights import LossWeights, MaskSize, weights_of
from raison.training.settings.classifier import MOST_SEED, AboveChanceSetting, BatchSetting, EpochsSetting, HalfSetting

ENCODER_RATE, LOW_RANK_RATE = 4e-5, 1e-3
"""Learning rates: that of the published code, for a whole backbone; and one for low-rank matrices."""
LOSSES = ("prediction", "inverse", "size")

BackboneSetting = Annotated[
    str | None, Setting("Backbone of the attribution model: own, minilm, a folder or an encoder's Hub id.")
]
RankSetting = Annotated[
    int | None, Setting("Rank of the matrices added to the backbone; 0 trains all of it.", least=1, none=0)
]
TextsSetting = Annotated[int, Setting("Number of training texts.", least=1)]
ValidationSetting = Annotated[int, Setting("Number of validation texts.", least=1)]


@dataclass(frozen=True, slots=True)
class AmlSettings:
    """How to train an explainer. The defaults are those of the published code, if it has them.

    `metrics` are names or calls of metrics with one number per text; each gets the weights and the checkpoint that are
    best for it. `backbone` None is the explained model's own encoder, or MiniLM for a model that has none. `rank` None
    trains all of it. `masking` None is the mask token, or the next available choice (raison.masking.substitutes). With
    `weights` None they are searched for. `above_chance` refuses a model that is hardly better on the held-out texts
    than their most frequent label, if their labels are classes of the model.
    """

    metrics: Annotated[
        tuple[str, ...],
        Setting("Comma-separated metrics to train for; they share the search.", options=("--metrics", "--metric")),
    ] = ("comprehensiveness",)
    backbone: BackboneSetting = None
    rank: RankSetting = 4
    learning_rate: Annotated[
        float | None, Setting("Learning rate; 0.001, or 0.00004 with --rank 0.", above=0, options=("--lr",))
    ] = None
    masking: Annotated[
        str | None, Setting("Replacement of masked units: mask, ellipsis, unk, pad, random, predicted, learned.")
    ] = None
    filler: Annotated[str | None, Setting("A masked language model, for --masking predicted.")] = None
    size: Annotated[MaskSize, Setting("Penalty on a mask's size: cross_entropy or l1.")] = "cross_entropy"
    merge: Annotated[Merge, Setting("A unit's score: max or mean over its tokens.")] = "max"
    unit: Annotated[Granularity, Setting("What is masked: token, word or sentence.", options=("--unit", "-u"))] = (
        "token"
    )
    texts: TextsSetting = 1000
    validation: ValidationSetting = 200
    epochs: EpochsSetting = 10
    batch_size: BatchSetting = 20
    checks: Annotated[int, Setting("Evaluations per epoch.", least=1)] = 3
    weights: Annotated[
        LossWeights | None,
        Setting("Weights of the losses prediction,inverse,size, such as 1,1,0.5: no search.", read=weights_of),
    ] = None
    without: Annotated[
        Literal["prediction", "inverse"] | None, Setting("Leave out a loss: prediction or inverse (Xpred, Xinv).")
    ] = None
    trials: Annotated[int, Setting("Number of weights that the search tries.", least=1)] = 30
    search_texts: Annotated[int, Setting("Number of training texts per trial.", least=1)] = 450
    search_epochs: Annotated[int, Setting("Epochs per trial.", least=1)] = 2
    seed: Annotated[int, Setting("Seed of the texts, the new weights and the search.", least=0, most=MOST_SEED)] = 0
    half: HalfSetting = False
    above_chance: AboveChanceSetting = False
    progress: bool = True

    def __post_init__(self) -> None:
        check(self)

    @property
    def rate(self) -> float:
        """The learning rate, of training and of fine-tuning."""
        return self.learning_rate or (ENCODER_RATE if self.rank is None else LOW_RANK_RATE)
