"""The first file of a run, as records; `raw` is the file's whole content, which names the run.

A study's facts about its models are here as well, because tables and figures of runs show them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from raison.core.errors import DataError
from raison.core.settings.fields import Setting
from raison.core.settings.tables import WHOLE
from raison.runs.summary import MetricInfo

MOST_TOGETHER = 16
"""Maximum number of texts of a run that are written together; that of older runs."""
TEXTS = 10_000_000
"""Maximum number of texts of a run; memory for all of them is reserved up front."""

Raw = Annotated[Mapping[str, Any], WHOLE]
Seeds = Annotated[tuple[int, ...], Setting(words="a list of different whole numbers", distinct=True)]
Count = Annotated[int, Setting(least=0, most=TEXTS)]


@dataclass(frozen=True, slots=True)
class RowHead:
    """One row of a run's table: a method under each of its seeds, its maps chosen by a metric or not."""

    label: str
    method: str
    seeds: Seeds
    selected_by: str | None = None

    @property
    def keys(self) -> list[tuple[str, int]]:
        """The row under each of its seeds."""
        return [(self.label, seed) for seed in self.seeds]


@dataclass(frozen=True, slots=True)
class SettingsHead:
    """The explained target and the settings of a run."""

    unit: str
    of: str
    seed: int
    raw: Raw


@dataclass(frozen=True, slots=True)
class RunHead:
    """The request of a run. `cautions` are reported with the results; `outputs` "" is classes.

    `together` texts are explained, evaluated and written together, so that a resumed run repeats the same batches. If
    every prediction in a text counts as one of `texts`, `text_numbers` has the number of each one's text.
    """

    raison: str
    model: str
    data: str
    texts: Count
    rows: tuple[RowHead, ...]
    metrics: tuple[MetricInfo, ...]
    settings: SettingsHead
    versions: Mapping[str, str]
    raw: Raw
    identity: Mapping[str, str] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()
    outputs: str = ""
    together: Annotated[int, Setting(least=1, most=MOST_TOGETHER)] = MOST_TOGETHER
    text_numbers: tuple[int, ...] = ()

    @property
    def single(self) -> tuple[MetricInfo, ...]:
        """The metrics of single texts, in the order of a record's scores."""
        return tuple(metric for metric in self.metrics if not metric.grouped)

    @property
    def grouped(self) -> tuple[str, ...]:
        """The metrics of many texts."""
        return tuple(metric.label for metric in self.metrics if metric.grouped)

    @property
    def keys(self) -> list[tuple[str, int]]:
        """All rows under all of their seeds."""
        return [key for row in self.rows for key in row.keys]


@dataclass(frozen=True, slots=True)
class ModelHead:
    """A study's facts about a model: accuracies by data set, numbers of parameters, and its classes."""

    name: str = ""
    parameters: int | None = None
    accuracy: Mapping[str, float] | None = None
    blocks: int | None = None
    classes: tuple[str, ...] = ()


def is_folder_name(name: str) -> bool:
    """Whether a name from a record is a plain folder name that cannot lead outside of its parent folder."""
    return bool(name) and name not in (".", "..") and not set(name) & set("/\\:") and name.isprintable()


def check_folder(name: str) -> None:
    """DataError for a run's name that is not a folder name within the study's folder."""
    if not is_folder_name(name):
        raise DataError(f"the run name {name!r:.40} cannot be used as a folder name.")
