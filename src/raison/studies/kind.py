"""Kinds of studies: a kind is a folder in raison.studies.kinds with these four files, found by its name.

    spec.py       `parse`: a typed record of a file, or every mistake in it
    work.py       `examine` with models and data, `jobs`, `estimate`
    results.py    FOLDERS that it writes, `read` them without torch, `sample`: the values that a claim compares
    sections.py   `sections`: the results as neutral records of raison.report.tables.records

Everything else, from the command line to the page, is the same for all kinds and uses these by name. Files are imported
on demand: reading and reporting never load torch.
"""

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import get_annotations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from raison.core.errors import DataError, InputError, RaisonError
from raison.core.registry import imported, path_of
from raison.core.settings.declared import untaken
from raison.jobs import folder as folders
from raison.jobs.engine import Job
from raison.studies import kinds

if TYPE_CHECKING:
    from raison.data import Dataset
    from raison.report.tables.records import Document, Table
    from raison.runs.headers import RunHead
    from raison.studies.claims import PairedSample
    from raison.studies.file import Study
    from raison.studies.folder import Claim, WrittenStudy

DEFAULT = "comparison"
"""The kind of a study file that names none."""


@dataclass(frozen=True, slots=True)
class EstimateTable:
    """The estimated cost of a study as a table; `lines` are shown below it, `values` are for programs."""

    table: "Table"
    lines: tuple[str, ...]
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Examined(ABC):
    """A study that can be run, after its models and data were checked: the header of its folder.

    `parts` are headers of comparisons inside the folder, by their own. `labels` has the data whose largest class is
    used to judge claims.
    """

    study: "Study"
    header: Mapping[str, Any]
    parts: "Mapping[str, RunHead]" = field(default_factory=dict)
    labels: "Mapping[str, Dataset]" = field(default_factory=dict)


class Spec(Protocol):
    """spec.py. `tools` are the functions that a study calls, so that tests can replace them."""

    def tools(self) -> object: ...
    def parse(self, table: Mapping[str, Any], place: Path, tools: Any) -> Any:
        """The typed record of a parsed file in the folder `place`. Raises MistakesError with all of them."""


class KindWork(Protocol):
    """work.py. `sources` are folders that have files of REUSED, whose records are taken over."""

    REUSED: tuple[str, ...]

    def examine(self, study: "Study", limit: int | None, sources: Sequence[Path]) -> Examined:
        """Check every model and data set. Raises StudyError with every problem found."""

    def jobs(self, examined: Any, folder: Path, shard: int | None) -> list[Job]:
        """All jobs, done or not; records are written to the files of a shard."""

    def begin(self, examined: Any, folder: Path, sources: Sequence[Path]) -> None:
        """Take over the sources' records, if any: in one process at a time, and again on every resume."""

    def estimate(self, examined: Any) -> EstimateTable: ...


class Results(Protocol):
    """results.py. The first of FOLDERS identifies the folder of a study file."""

    FOLDERS: tuple[folders.WorkKind, ...]

    def read(self, folder: Path) -> "WrittenStudy":
        """What has been written so far. Raises DataError."""

    def places(self, results: Any, claim: "Claim") -> list[str]:
        """The runs, or tasks, that a claim covers."""

    def sample(self, results: Any, claim: "Claim", place: str) -> "PairedSample | None":
        """The values that a claim compares in one place; None if there are none."""


class Sections(Protocol):
    """sections.py."""

    def sections(self, results: Any, target: Path | None = None) -> "Document":
        """The report of the results; pages of single texts are written into the folder `target`, if given."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind by the name of its folder."""

    name: str

    @property
    def spec(self) -> Spec:
        """Each of the four raises InputError for a file that cannot be used."""
        return _part(self.name, "spec", Spec)

    @property
    def work(self) -> KindWork:
        return _part(self.name, "work", KindWork)

    @property
    def results(self) -> Results:
        results: Results = _part(self.name, "results", Results)
        if not (results.FOLDERS and all(isinstance(one, folders.WorkKind) for one in results.FOLDERS)):
            raise InputError(f"{self.file('results')}: FOLDERS is {results.FOLDERS!r:.60}: list at least one WorkKind.")
        return results

    @property
    def sections(self) -> Sections:
        return _part(self.name, "sections", Sections)

    @property
    def folder(self) -> folders.WorkKind:
        """The marker file of its folder."""
        return self.results.FOLDERS[0]

    def file(self, part: str) -> str:
        """One of its files, as messages name it."""
        return path_of(f"{kinds.__name__}.{self.name}.{part}")


def every() -> list[Kind]:
    """All kinds, by their names."""
    folders = [folder for place in kinds.__path__ for folder in Path(place).iterdir()]
    return [Kind(name) for name in sorted({folder.name for folder in folders if (folder / "spec.py").is_file()})]


def kind_of(folder: Path) -> Kind:
    """The kind of the study, comparison or audit in a folder. Raises DataError if it contains none, which names the
    kinds that cannot be read, if there are any, and InputError if two kinds have its marker file."""
    broken, found = [], []
    for kind in every():
        try:
            known = kind.results.FOLDERS
        except RaisonError as error:
            broken.append(str(error))
            continue
        found += [(one.marker, kind) for one in known if (folder / one.marker).is_file()]
    if found:
        return _only(found)
    if broken:
        raise DataError(f"{folder} contains no work of the kinds that can be read, and {broken[0]}")
    raise DataError(
        f"{folder} contains no study, comparison, audit or explanations of files: give the folder that "
        "raison study run, raison audit, raison compare --out or raison explain --data wrote."
    )


def _only(found: Sequence[tuple[str, Kind]]) -> Kind:
    """The kind of the first marker that was found. Raises InputError if another kind has the same one."""
    marker, kind = found[0]
    sharing = list(dict.fromkeys(other for name, other in found if name == marker))
    if len(sharing) > 1:
        files = " and ".join(one.file("results") for one in sharing)
        raise InputError(f"{marker} marks the folders of one kind, and {files} name it: rename it in one of them.")
    return kind


def _part(kind: str, part: str, protocol: type) -> Any:
    """A file of a kind, which has what its protocol says. Raises InputError, which names the file, if it does not."""
    name = f"{kinds.__name__}.{kind}.{part}"
    module = imported(name)
    stated = [one for one in (*get_annotations(protocol), *vars(protocol)) if not one.startswith("_")]
    if lacking := [one for one in stated if not hasattr(module, one)]:
        raise InputError(f"{path_of(name)} has no {' and no '.join(lacking)}, which raison.studies.kind describes.")
    for function in stated:
        declared = getattr(protocol, function, None)
        if declared is not None and (arguments := untaken(getattr(module, function), declared)):
            raise InputError(f"{path_of(name)}: {function} has to take {arguments}, as raison.studies.kind describes.")
    return module
