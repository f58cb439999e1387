"""A study file: which models explain which data, by which methods, judged by which metrics.

    schema = 1
    title = "..."
    methods = ["integrated_gradients(steps=20)", "lime"]
    metrics = ["token_f1", "auroc"]
    [models.sst2]
    name = "demo/sst2"
    [data.movies]
    source = "eraser_movies"
    [examples]
    top = 3

The keys are in raison.studies.schema, what they may say in raison.studies.kinds.comparison.check.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from raison.core.errors import MISTAKE, DataError
from raison.core.unit import Granularity
from raison.data import Column, Wanted
from raison.models.loading.load import Explained
from raison.studies.kinds.comparison.check import canonical_metric, canonical_row, check, grid, run_name
from raison.studies.kinds.comparison.results import digest_of

_SIZES = ("mini", "paper")
_PLAIN = "study"


class StudyError(DataError):
    """A study that cannot be run; lists every mistake on a line of its own."""

    def __init__(self, path: Path, mistakes: Sequence[str]) -> None:
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        super().__init__(MISTAKE.join([f"{path} cannot be run, it has {count}:", *mistakes]))
        self.mistakes = tuple(mistakes)


@dataclass(frozen=True, slots=True)
class StudySettings:
    """What is explained; see raison.compare. `target` "predicted" or "label" (each row's own), or a class, or two.

    `of` None is what is usual for each model: the probability of a class, or a model's one number.
    """

    unit: Granularity = "word"
    target: str | int | tuple[str | int, str | int] = "predicted"
    of: str | None = None
    removal: str | None = None
    seeds: tuple[int, ...] = (0,)
    truncate: bool = False


@dataclass(frozen=True, slots=True)
class StudyModel:
    """What raison.load takes; `labels` are the data's names for the classes, in the model's order.

    `removal` stands above the study's for this model: models of one study need not have the same tokens.

    With `made`, a table of the keys in raison.studies.schema.MADE, the study makes the model itself
    (raison.studies.made), and `name` is only what the records call it.
    """

    name: str
    labels: tuple[str, ...] = ()
    dtype: str | None = None
    device: str | None = None
    prompt: str | None = None
    explained: Explained = "input"
    calibrate: bool = False
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
    limit: int | None = None
    wanted: Wanted | None = None
    known_features: Mapping[str, Any] | None = None
    sample: int | None = None
    longest: int | None = None
    first_words: int | None = None
    unit: Granularity | None = None
    answer_window: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """What a study states: the row is `side` `than` by `metric`, in one run or (None) in every one."""

    says: str
    metric: str
    row: str
    side: Literal["above", "below"]
    than: str | float
    run: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the file, but with methods and metrics written as the records do."""
        place = {} if self.run is None else {"run": self.run}
        return {"says": self.says, "metric": self.metric, self.side: self.row, "than": self.than, **place}


@dataclass(frozen=True, slots=True)
class Study:
    """A study file without mistakes. `runs` are the keys of model and data, in the file's order.

    `without` has the methods that a run leaves out, such as one that its model does not allow.
    """

    path: Path
    text: str
    title: str
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    select: tuple[str, ...]
    agreement: bool
    settings: StudySettings
    models: Mapping[str, StudyModel]
    data: Mapping[str, StudyData]
    runs: tuple[tuple[str, str], ...]
    claims: tuple[Claim, ...]
    without: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def methods_of(self, run: tuple[str, str]) -> tuple[str, ...]:
        """The methods of one run, the keys of model and data."""
        left_out = self.without.get(run, ())
        return tuple(method for method in self.methods if method not in left_out)

    @property
    def digest(self) -> str:
        """The hash that names the file's content."""
        return digest_of(self.text)

    @property
    def name(self) -> str:
        """The file's name, with its folder's where files of all studies are called the same."""
        stem, folder = self.path.stem, self.path.resolve().parent.name
        if stem == _PLAIN:
            return folder or stem
        return f"{folder}-{stem}" if stem in _SIZES and folder else stem

    @property
    def run_names(self) -> tuple[str, ...]:
        """The runs' folders."""
        return tuple(run_name(*run) for run in self.runs)


def read(path: str | Path) -> Study:
    """Read a study file. Raises DataError for one that is missing or no TOML, StudyError with all other mistakes."""
    path = Path(path)
    text = text_of(path)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is no TOML: {_lowered(str(error))}.") from None
    mistakes = check(table)
    if mistakes:
        raise StudyError(path, mistakes)
    settings = dict(table.get("settings", {}))
    if isinstance(settings.get("target"), list):
        settings["target"] = tuple(settings["target"])
    return Study(
        path=path,
        text=text,
        title=table["title"],
        methods=tuple(table["methods"]),
        metrics=tuple(table["metrics"]),
        select=tuple(table.get("select", ())),
        agreement=table.get("agreement", False),
        settings=StudySettings(**settings | {"seeds": tuple(settings.get("seeds", (0,)))}),
        models={key: model_of(entry, path.parent) for key, entry in table["models"].items()},
        data={key: data_of(entry, path.parent) for key, entry in table["data"].items()},
        runs=tuple(grid(table)),
        claims=tuple(_claim(entry) for entry in table.get("claims", ())),
        without={(run["model"], run["data"]): tuple(run.get("without", ())) for run in table.get("runs", ())},
    )


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path} is missing: give a study file (.toml).") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is no text in UTF-8 ({error.reason} at byte {error.start}): save it as UTF-8."
        ) from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from None


def _lowered(message: str) -> str:
    """Python's own words; they name the line and the column."""
    return message[:1].lower() + message[1:].rstrip(".")


def model_of(entry: Mapping[str, Any], folder: Path) -> StudyModel:
    values = dict(entry) | {"labels": tuple(entry.get("labels", ()))}
    if "made" in entry:
        made = entry["made"]
        parts = {key: made[key] for key in ("train", "held_out") if key in made}
        # As for data: files that the study brings along.
        values["made"] = made | {key: part | {"source": _source(part, folder)} for key, part in parts.items()}
    return StudyModel(**values)


def _source(entry: Mapping[str, Any], folder: Path) -> str:
    """A study that brings its data along can be run from anywhere."""
    beside = folder / entry["source"]
    return str(beside) if beside.is_file() else str(entry["source"])


def data_of(entry: Mapping[str, Any], folder: Path) -> StudyData:
    columns: dict[str, Column] = {key: entry[key] for key in ("text", "label", "rationale") if key in entry}
    pair = tuple(entry["pair"]) if "pair" in entry else None
    wanted = Wanted(pair=pair, **columns) if columns or pair else None
    return StudyData(
        _source(entry, folder),
        entry.get("split", "test"),
        entry.get("limit"),
        wanted,
        entry.get("known_features"),
        entry.get("sample"),
        entry.get("longest"),
        entry.get("first_words"),
        entry.get("unit"),
        entry.get("answer_window"),
    )


def _claim(entry: Mapping[str, Any]) -> Claim:
    side: Literal["above", "below"] = "above" if "above" in entry else "below"
    than = entry["than"]
    return Claim(
        entry["says"],
        canonical_metric(entry["metric"]),
        canonical_row(entry[side]),
        side,
        canonical_row(than) if isinstance(than, str) else float(than),
        entry.get("run"),
    )
