"""Entries of models, data and settings in study files and on the command line; without torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from raison.core.inputs.unit import Granularity
from raison.core.settings.fields import Setting
from raison.core.settings.tables import FLAT, TableReading
from raison.core.targets.choices import Aggregation, Explained, Measure, Pooled
from raison.data import Wanted
from raison.data.columns import EncodingSetting
from raison.data.known_features import DEFAULT_WORDS, Position
from raison.data.lengths import Lengths
from raison.explaining.settings import (
    DeviceSetting,
    DtypeSetting,
    OfSetting,
    PromptSetting,
    RemovalSetting,
    TruncateSetting,
    UnitSetting,
)
from raison.runs.headers import Seeds
from raison.runs.models_figure import Axis
from raison.training.settings.scratch import ScratchSettings

Count = Annotated[int | None, Setting(least=1)]

PREDICTED = {
    "target": "target cannot be set here: studies of this kind explain the predicted class. Leave it out.",
    "precision": "precision cannot be set here: leave it out.",
}
"""Settings that do not exist in kinds which explain the predicted class of the unchanged model."""

OF_RUNS = TableReading(
    without={key: f'{key} is not a key of a claim; select a run with run = "MODEL--DATA".' for key in ("model", "data")}
)
"""How claims are read that may be about a single run."""


@dataclass(frozen=True, slots=True)
class About:
    """The keys of every study file."""

    schema: int
    title: str
    kind: str = ""
    source: str | None = None
    reference: str | None = None
    size: Literal["mini", "paper"] | None = None
    about: str | None = None


@dataclass(frozen=True, slots=True)
class StudySettings:
    """What is explained; see raison.compare. `target` "predicted" or "label" (each row's own), or a class, or two.

    `of` None is each model's default: the probability of a class, or a model's one number.
    """

    unit: UnitSetting = "word"
    target: Annotated[
        str | int | tuple[str | int, str | int],
        Setting(words='"predicted", "label", a class, or a list of two classes [this, not that]'),
    ] = "predicted"
    of: OfSetting = None
    removal: RemovalSetting = None
    seeds: Seeds = (0,)
    truncate: TruncateSetting = False


@dataclass(frozen=True, slots=True)
class KnownFeatures:
    """The arguments of raison.data.known_features."""

    words: tuple[str, ...] = DEFAULT_WORDS
    position: Annotated[Position, Setting(words='"end", "start", "random" or a whole number')] = "end"
    correlation: float = 1.0
    seed: int = 0


_NO_CONTRAST = {"contrast": "studies explain predictions without a contrast: leave contrast out."}


@dataclass(frozen=True, slots=True)
class StudyData:
    """`source` is as for raison.data.load, with files in the study file's folder first; `unit` is that of this data's
    runs.

    `sample` is the seed of a random draw of `limit` rows. Texts get their `lengths` before a limit or a draw.
    `template` presents questions with sources to a language model that writes; see raison.cite. `edited_words` keeps
    texts that differ from another one in at most this number of words and in their label: the edit is the rationale.
    `known_features` None leaves the data as it is. `skip_bad` leaves out rows that cannot be read.
    """

    source: str
    split: str = "test"
    limit: Count = None
    wanted: Annotated[Wanted, TableReading(flat=True, without=_NO_CONTRAST)] = Wanted()  # noqa: RUF009
    known_features: KnownFeatures | None = None
    sample: int | None = None
    lengths: Annotated[Lengths, FLAT] = Lengths()  # noqa: RUF009
    unit: Granularity | None = None
    template: str | None = None
    edited_words: Count = None
    encoding: EncodingSetting = "utf-8"
    skip_bad: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """How a study makes a model (raison.studies.made): its data, and the settings of its training."""

    train: StudyData
    held_out: StudyData | None = None
    settings: Annotated[ScratchSettings, FLAT] = ScratchSettings()  # noqa: RUF009


@dataclass(frozen=True, slots=True)
class StudyModel:
    """The arguments of raison.load; `labels` are the data's names for the classes, in the model's order.

    `removal` overrides the study's for this model, since models of one study may have different tokens.

    With `made` the study makes the model itself, and `name` is only its name in the records.
    """

    name: Annotated[
        str, Setting("Demo name, Hub id, folder or server's address of a model.", options=("--model", "-m"))
    ]
    labels: tuple[str, ...] = ()
    dtype: DtypeSetting = None
    device: DeviceSetting = None
    prompt: PromptSetting = None
    explained: Annotated[
        Explained,
        Setting("Also score the prompt's sentences and shots.", options=("--explain-prompt",), flag="prompt"),
    ] = "input"
    calibrate: Annotated[bool, Setting("Divide by the label words' probabilities on inputs without content.")] = False
    similarity: Annotated[
        Measure | None, Setting("Of an embedding model: cosine or dot, the similarity of the two texts of a pair.")
    ] = None
    pooling: Annotated[
        Pooled | None, Setting("With --similarity, what a text's vector is: mean, cls, max or lasttoken.")
    ] = None
    aggregation: Annotated[
        Aggregation | None,
        Setting("Of a tagger, how tokens become entities: simple, none, first, average or max."),
    ] = None
    removal: str | None = None
    served: Annotated[str | None, Setting("For a server: the model's name there; by default its first model.")] = None
    max_requests: Annotated[int | None, Setting("For a server: the maximum number of requests.", least=1)] = None
    max_tokens: Annotated[
        int | None, Setting("For a server: the maximum number of tokens, read and generated.", least=1)
    ] = None
    max_cost: Annotated[float | None, Setting("For a server: the maximum cost of all requests.", above=0)] = None
    price_in: Annotated[float, Setting("For a server: the price of a million input tokens.", least=0)] = 0.0
    price_out: Annotated[float, Setting("For a server: the price of a million output tokens.", least=0)] = 0.0
    made: Annotated[Made | None, TableReading(without={"progress": "progress cannot be set here: leave it out."})] = (
        None
    )


@dataclass(frozen=True, slots=True)
class GridRun:
    """One model on one data set, by the study's keys; `without` has the methods that it leaves out."""

    model: str
    data: str
    without: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.model}--{self.data}"


@dataclass(frozen=True, slots=True)
class ModelsFigure:
    """How a study draws figures over its models."""

    x: Axis


@dataclass(frozen=True, slots=True)
class Grid:
    """The models and data of a study, and the runs of one on the other; all of them if none are named."""

    models: Mapping[str, StudyModel]
    data: Mapping[str, StudyData]
    runs: tuple[GridRun, ...] | None = None
    figure: ModelsFigure | None = None

    @property
    def wanted(self) -> tuple[GridRun, ...]:
        """The runs, in the file's order."""
        if self.runs is not None:
            return self.runs
        return tuple(GridRun(model, data) for model in self.models for data in self.data)

    def of_model(self, key: str) -> list[GridRun]:
        """The runs of one model."""
        return [run for run in self.wanted if run.model == key]

    @property
    def model_keys(self) -> list[str]:
        """The models that are run, in the file's order."""
        return list(dict.fromkeys(run.model for run in self.wanted))

    @property
    def data_keys(self) -> list[str]:
        """The data that is used."""
        return list(dict.fromkeys(run.data for run in self.wanted))
