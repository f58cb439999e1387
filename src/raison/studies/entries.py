"""Models, data and settings as study files and the command line give them; without torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from raison.core.choices import Explained
from raison.core.fields import Setting
from raison.core.unit import Granularity
from raison.data import Wanted
from raison.explaining.settings import (
    DeviceSetting,
    DtypeSetting,
    OfSetting,
    PromptSetting,
    RemovalSetting,
    TruncateSetting,
    UnitSetting,
)

Count = Annotated[int | None, Setting(least=1)]


@dataclass(frozen=True, slots=True)
class StudySettings:
    """What is explained; see raison.compare. `target` "predicted" or "label" (each row's own), or a class, or two.

    `of` None is what is usual for each model: the probability of a class, or a model's one number.
    """

    unit: UnitSetting = "word"
    target: Annotated[
        str | int | tuple[str | int, str | int],
        Setting(words='"predicted", "label", a class, or a list of two classes [this, not that]'),
    ] = "predicted"
    of: OfSetting = None
    removal: RemovalSetting = None
    seeds: Annotated[tuple[int, ...], Setting(words="a list of different whole numbers", distinct=True)] = (0,)
    truncate: TruncateSetting = False


@dataclass(frozen=True, slots=True)
class StudyModel:
    """What raison.load takes; `labels` are the data's names for the classes, in the model's order.

    `removal` overrides the study's for this model, since models of one study may have different tokens.

    With `made`, a table of the keys in raison.studies.schema.MADE, the study makes the model itself
    (raison.studies.made), and `name` is only what the records call it.
    """

    name: Annotated[str, Setting("Demo name, Hub id or folder of a model.", options=("--model", "-m"))]
    labels: tuple[str, ...] = ()
    dtype: DtypeSetting = None
    device: DeviceSetting = None
    prompt: PromptSetting = None
    explained: Annotated[
        Explained,
        Setting("Score the prompt's sentences and shots, too.", options=("--explain-prompt",), flag="prompt"),
    ] = "input"
    calibrate: Annotated[bool, Setting("Divide by the label words' probabilities on inputs without content.")] = False
    removal: str | None = None
    made: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class StudyData:
    """`source` is what raison.data.load takes, a file beside the study file first; `unit` is that of this data's runs.

    `sample` is the seed of a random draw of `limit` rows. `first_words` cuts texts, `longest` leaves out texts of more
    words, before a limit or a draw. `answer_window` cuts the contexts of questions to so many words around the answer,
    before all of these. `known_features` holds the settings of raison.data.known_features, None where that
    is not wanted.
    """

    source: str
    split: str = "test"
    limit: Count = None
    wanted: Wanted | None = None
    known_features: Mapping[str, Any] | None = None
    sample: int | None = None
    longest: Count = None
    first_words: Count = None
    unit: Granularity | None = None
    answer_window: Count = None
