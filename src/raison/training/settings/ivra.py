"""How a model is fine-tuned, and how it is trained to explain itself (IvRA)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from raison.core.errors import InputError
from raison.core.settings.fields import Setting, check
from raison.training.settings.classifier import MOST_SEED, AboveChanceSetting, BatchSetting, EpochsSetting

if TYPE_CHECKING:
    from raison.models.derived.attention_explainer import Design
    from raison.training.self_explaining.criterion import Criterion

DECAY_EPOCHS = 2
"""Number of epochs after which the learning rate is multiplied by the decay, as in the paper."""
TextsSetting = Annotated[int | None, Setting("Number of training texts.", least=1)]
ValidationSetting = Annotated[int | None, Setting("Number of validation texts.", least=1)]


@dataclass(frozen=True, slots=True)
class FineTuneSettings:
    """How to fine-tune a base model on the task alone: all weights but the word embeddings, without dropout.

    `rank` trains low-rank matrices in place of all weights, and the head. `texts` and `validation` rows are taken from
    the data, each label in proportion; None is all that there are, and a tenth of it. The epoch that is most accurate
    on the validation rows is kept.
    """

    epochs: EpochsSetting = 3
    batch_size: BatchSetting = 16
    learning_rate: Annotated[float, Setting(above=0)] = 5e-5
    rank: Annotated[int | None, Setting(least=1)] = None
    texts: TextsSetting = None
    validation: ValidationSetting = None
    seed: Annotated[int, Setting(least=0, most=MOST_SEED)] = 0
    progress: bool = True

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class IvraSettings:
    """How to train a model to explain itself. The defaults are the paper's, where it has them.

    `criteria` are names, short names or calls with settings; `weights` are their weights relative to the task's loss (1
    each by default). `form`, `norm`, `selection`, `over` and `initial` are the explainer's
    (models/derived/attention_explainer.py). Word embeddings are fixed. `texts` and `validation` are as in
    FineTuneSettings. `roll_back` is MetaDistil's pilot update. The student is not fine-tuned.

    `above_chance` refuses a model that is hardly better on the held-out texts than their most frequent label. The
    checkpoint that is best by the criteria (the mean of their scores) is kept.
    """

    criteria: Annotated[
        tuple[str, ...],
        Setting(
            "Criteria to train for: sim, comp, suff, suff_mae, suff_kl, cons, clust; comma-separated.",
            options=("--criteria", "-c"),
        ),
    ] = ()
    weights: Annotated[tuple[float, ...], Setting("Weight of each criterion relative to the task: 1,0.5.")] = ()
    form: Annotated[str, Setting("The explainer: ivra, or smat (heads alone).")] = "ivra"
    norm: Annotated[str, Setting("softmax, or sparsemax (needs raison[sparse]).")] = "softmax"
    selection: Annotated[tuple[str, ...], Setting("Which coefficients are trained.")] = ("feature", "head", "layer")
    over: Annotated[str, Setting("What is explained: units, or tokens (special ones too).")] = "units"
    initial: tuple[float, float] | None = None
    epochs: EpochsSetting = 20
    batch_size: BatchSetting = 64
    learning_rate: Annotated[float, Setting("Learning rate of the first two epochs.", above=0, options=("--lr",))] = (
        3e-5
    )
    decay: Annotated[float, Setting("Factor on the learning rate every two epochs.", above=0)] = 0.75
    coefficient_rate: Annotated[float, Setting("Factor on the learning rate of the explainer.", above=0)] = 100.0
    rank: Annotated[int | None, Setting("Train low-rank matrices; 0 trains all weights.", least=1, none=0)] = None
    student: Annotated[str, Setting("For sim: the student model: minilm, tiny or a folder.")] = "minilm"
    student_share: Annotated[
        float, Setting("For sim: the share of texts for training the student.", above=0, most=1)
    ] = 0.2
    student_batch: Annotated[int, Setting("For sim: texts per step of the student.", least=1)] = 8
    student_rate: Annotated[float, Setting("For sim: its learning rate.", above=0)] = 0.05
    roll_back: Annotated[bool, Setting("For sim: the student repeats each step with the updated model.")] = False
    texts: TextsSetting = None
    validation: ValidationSetting = None
    checks: Annotated[int, Setting("Evaluations per epoch.", least=1)] = 1
    seed: Annotated[int, Setting("Seed of the texts, their order and new weights.", least=0, most=MOST_SEED)] = 0
    above_chance: AboveChanceSetting = False
    progress: bool = True

    def __post_init__(self) -> None:
        check(self)
        self.design.check()
        criteria = self.created()
        if self.weights and len(self.weights) != len(criteria):
            raise InputError(f"{len(self.weights)} weights for {len(criteria)} criteria: give one for each, or none.")
        if any(not weight > 0 for weight in self.weights):
            raise InputError(f"weights of criteria must be above 0; got {self.weights}.")
        if self.norm == "sparsemax" and any(criterion.takes_logarithms for criterion in criteria):
            raise InputError(
                f"the criteria {', '.join(self.criteria)} take the logarithm of shares, and sparsemax gives zeros: "
                "give smoothing above 0, such as 0.01, or --norm softmax."
            )
        fewest = max(criterion.fewest for criterion in criteria)
        if self.batch_size < fewest:
            raise InputError(
                f"a batch of {self.batch_size} has no pair of texts to compare: for the criterion "
                f"{', '.join(self.criteria)} give --batch-size {fewest} or more (the paper uses 64)."
            )

    @property
    def design(self) -> "Design":
        """The explainer's design."""
        # Imported here, because settings are read without torch.
        from raison.models.derived.attention_explainer import Design

        return Design(self.form, self.norm, self.selection, self.over, self.initial)

    def created(self) -> "tuple[Criterion, ...]":
        """The criteria. Raises InputError or UnknownNameError."""
        from raison.training.self_explaining.criterion import create_criteria

        return create_criteria(self.criteria)

    def weighted(self) -> "tuple[tuple[Criterion, float], ...]":
        """The criteria and their weights."""
        criteria = self.created()
        return tuple(zip(criteria, self.weights or (1.0,) * len(criteria), strict=True))
