"""How a whole classifier is trained, from nothing or from a base."""

from dataclasses import dataclass
from typing import Annotated

from raison.core.settings.fields import Setting, check
from raison.training.settings.classifier import MOST_SEED, BatchSetting, EpochsSetting, HalfSetting, PeakSetting


@dataclass(frozen=True, slots=True)
class ScratchSettings:
    """How to make a classifier; schedule and early stop as in the thesis, section 3.6.3.

    Without `base` the model is a small one of `architecture` (models/loading/scratch.py). With one (a folder, a name
    that models/loading/ready_made knows, or an id of the Hub) all of it is trained, or with `rank` low-rank
    adapters that are merged afterwards; `architecture` "t5_encoder" takes the encoder of a T5, and "roberta",
    "distilbert" and "electra" are classes that the weights of a BERT are laid into. `layers` of a base are its lowest
    ones, all by default; without a base 2. The learning rate rises over 6 % of the steps and falls linearly. The best
    epoch by the held-out texts is kept, and `patience` epochs without improvement end the training.

    `masked` is the share of texts in which, at each step, a random part of the tokens is replaced by the token for
    removed ones: a model trained from scratch cannot learn that token otherwise. `half` computes the training passes in
    bfloat16. A `vocabulary` holds all 256 bytes.
    """

    architecture: Annotated[
        str,
        Setting(
            "bert, gpt2, roberta or t5_encoder; with --base: t5_encoder (of a T5), roberta, distilbert or electra."
        ),
    ] = ""
    base: Annotated[str, Setting("Base model to train completely: a known name, a folder or a Hub id.")] = ""
    rank: Annotated[int | None, Setting("Train low-rank matrices of a base, merged afterwards.", least=1)] = None
    layers: Annotated[
        int | None, Setting("Number of layers of a small model (2), or of a base, counted from below (all).", least=1)
    ] = None
    width: Annotated[int, Setting("Width of a small model.", least=1)] = 64
    heads: Annotated[int, Setting("Attention heads of a small model.", least=1)] = 4
    vocabulary: Annotated[int, Setting("Vocabulary size of a small model.", least=320)] = 4000
    epochs: EpochsSetting = 5
    batch_size: BatchSetting = 32
    learning_rate: PeakSetting = 1e-3
    patience: Annotated[int, Setting("Stop after this many epochs without improvement.", least=1)] = 5
    masked: Annotated[float, Setting("Share of training texts that are partly masked.", least=0, most=1)] = 0.0
    max_tokens: Annotated[int, Setting("Cut texts after this many tokens.", least=8)] = 128
    seed: Annotated[int, Setting("Seed of the weights and the order of the rows.", least=0, most=MOST_SEED)] = 0
    half: HalfSetting = False
    progress: bool = True

    def __post_init__(self) -> None:
        check(self)
