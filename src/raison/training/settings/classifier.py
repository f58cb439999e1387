"""How a classifier is fine-tuned by low-rank adapters."""

from dataclasses import dataclass
from typing import Annotated

from raison.core.settings.fields import Setting, check

EpochsSetting = Annotated[int, Setting("Epochs over the training texts.", least=1)]
BatchSetting = Annotated[int, Setting("Texts per training step.", least=1)]
LabelsSetting = Annotated[tuple[str, ...], Setting("Names of numeric labels, in order: negative,positive.")]
PeakSetting = Annotated[float, Setting("Peak learning rate.", above=0, options=("--lr",))]
HalfSetting = Annotated[bool, Setting("Train in bfloat16: faster where supported.")]
MOST_SEED = 10**8
"""The generators of batches are seeded by the seed times 100,003 squared, which must fit into 64 bits."""
AboveChanceSetting = Annotated[
    bool,
    Setting("Continue even if the model has hardly learned its task.", options=("--even-at-chance",), flag=False),
]
"""Training from the command line refuses a model at chance, unless this option is given."""
LIMITED = "{} on this many rows, drawn at random."


@dataclass(frozen=True, slots=True)
class ClassifierSettings:
    """How to train a classifier.

    With empty `labels`, the classes are the training data's labels, sorted. The adapters are on every linear layer;
    with `last_layers`, nothing is propagated back below these blocks. `checkpoint_every` is in steps. `half` computes
    the training passes in bfloat16, about 1.5 times as fast on processors that support it; accuracies are measured in
    float32.
    """

    labels: LabelsSetting = ()
    epochs: EpochsSetting = 3
    batch_size: BatchSetting = 32
    learning_rate: PeakSetting = 1e-3
    rank: Annotated[int, Setting("Rank of the adapters.", least=1)] = 16
    dropout: Annotated[float, Setting("Dropout of the adapters.", least=0, most=0.9)] = 0.05
    last_layers: Annotated[int | None, Setting("Put adapters into the last N blocks only.", least=1)] = None
    smoothing: float = 0.0
    max_tokens: Annotated[int, Setting("Cut texts after this many tokens.", least=4)] = 128
    limit: Annotated[int | None, Setting(LIMITED.format("Train"), least=1)] = None
    test_limit: Annotated[int | None, Setting(LIMITED.format("Test"), least=1)] = None
    seed: Annotated[int, Setting("Seed of the new weights, the rows and their order.", least=0, most=MOST_SEED)] = 0
    keep_best: Annotated[bool, Setting("Keep the epoch that is best on the dev data.")] = False
    half: HalfSetting = False
    checkpoint_every: int = 200
    progress: bool = True

    def __post_init__(self) -> None:
        check(self)
