"""A study's folder: files common to all kinds and their checks; without torch.

    study.toml    the study file as it was run
    a header      a JSON file that identifies the kind: schema, name, digest, limit, versions, claims, the request
    labels.json   label statistics of the models (raison.runs.task_accuracy)

The rest is the kind's own, in its results.py.
"""

import hashlib
import json
import tomllib
from abc import ABC
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from raison._version import __version__
from raison.core.errors import DataError
from raison.core.settings.fields import Setting
from raison.core.settings.reading import toml_value
from raison.core.settings.tables import REST, read_written
from raison.jobs import identity
from raison.jobs.disk import write_whole
from raison.jobs.folder import FILE, WorkKind, read_marker, refuse_others, write_marker
from raison.jobs.identity import IDENTITY, SETTINGS, check, refuse
from raison.report.style import phrases
from raison.runs.headers import RunHead
from raison.runs.judging import Caveat, Side
from raison.runs.record_validation import check_schema
from raison.runs.run import HEADER, SCHEMA, check_same

PLACES = ("run", "task")
"""The keys by which a claim is about one place of a study."""
UNCOMPARED = ("versions", IDENTITY, "estimate", "spent", "name")
"""Parts of a header that may differ when work is resumed; the digest says whether it is the same study."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(ABC):
    """A claim that a study makes before it is run, in its file and its header: the row `above` or `below` another.

    The rest of a claim, such as its metric, depends on the kind. `by` is the claimed difference from another row.
    `caveat`: it was "exploratory", stated after the records had been seen, or holds "by construction", such as that the
    best of several maps is at least as good as one.
    """

    says: str
    above: str | None = None
    below: str | None = None
    than: Annotated[str | float, Setting(words="a row's label or a number")]
    by: float | None = None
    caveat: Caveat | None = None

    @property
    def side(self) -> Side:
        """The claimed side of the row relative to the other."""
        return "above" if self.above is not None else "below"

    @property
    def row(self) -> str:
        """The row on that side."""
        return str(self.below if self.above is None else self.above)

    @property
    def shift(self) -> float:
        """What the other row's values are moved by before they are compared: `by`, away from the other row."""
        return (self.by or 0.0) * (1 if self.side == "above" else -1)

    @property
    def labels(self) -> list[str]:
        """The rows that it names."""
        return [label for label in (self.above, self.below, self.than) if label and isinstance(label, str)]

    @property
    def measured(self) -> str:
        """The measure by which rows are compared, as the claim names it; "" if there is only one."""
        return ""

    def mistakes(self, where: str) -> list[str]:
        """Whether it has more than one side, or none, or a difference from a number."""
        mistakes = [f"{where}: give either above or below."] if (self.above is None) == (self.below is None) else []
        if self.by is not None and isinstance(self.than, int | float):
            mistakes.append(f"{where}: it compares with a number: leave by out.")
        return mistakes

    def to_dict(self) -> dict[str, object]:
        """The claim as plain JSON values."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}

    @property
    def stated(self) -> dict[str, object]:
        """What is claimed, in whatever words and from whichever row: which one is lower, which higher, by how much."""
        given = {name: value for name, value in self.to_dict().items() if name not in ("says", "caveat", "by")}
        than = self.than if isinstance(self.than, str) else float(self.than)
        # Without another row it is the same one under something else.
        sides: list[dict[str, object]] = [{"row": self.row}, {"row": self.row if than == "" else than}]
        for name in ("above", "below", "than"):
            given.pop(name, None)
        for name in [name.removeprefix("than_") for name in asdict(self) if name.startswith("than_")]:
            # What is not said of the other row is as with this one.
            same = given.pop(name, None)
            sides[0][name], sides[1][name] = same, given.pop(f"than_{name}", same)
        low, high = sides if self.side == "below" else reversed(sides)
        return given | {"low": low, "high": high} | ({"by": self.by} if self.by else {})

    @property
    def compared(self) -> dict[str, object]:
        """What is compared, whichever row is claimed to be higher; by how much tells two comparisons apart."""
        given = self.stated
        if self.by:
            return given
        sides = (given.pop("low"), given.pop("high"))
        return given | {"rows": sorted(json.dumps(side, sort_keys=True) for side in sides)}


def decides(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether two claims, as `compared` has them, are decided together. Without a place, a claim is about every one."""
    left = {place for place in PLACES if place not in one or place not in other}
    return one.keys() - left == other.keys() - left and all(one[name] == other[name] for name in one.keys() - left)


@dataclass(frozen=True, slots=True)
class FormerClaim:
    """A claim that was left out after the records had been seen: what it said, and its other entries."""

    says: str
    entries: Annotated[Mapping[str, Any], REST]

    def to_dict(self) -> dict[str, object]:
        """The claim as plain JSON values."""
        return {"says": self.says, **self.entries}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyHead(ABC):
    """The part of the header that all kinds share. `limit` is the --limit of the run.

    `withdrawn` are former claims that were left out after the records had been seen (raison.studies.restating).
    """

    name: str
    digest: str
    versions: Mapping[str, str]
    limit: Annotated[int | None, Setting(least=0)] = None
    withdrawn: tuple[FormerClaim, ...] = ()

    @property
    def claims(self) -> "tuple[Claim, ...]":
        """The claims, with rows and metrics as the records name them."""
        return ()


H = TypeVar("H", bound=StudyHead)


@dataclass(frozen=True, slots=True)
class WrittenStudy(ABC):
    """What has been written so far; `text` is the study file, "" if there was none."""

    folder: Path
    header: StudyHead
    text: str

    @property
    def file(self) -> dict[str, Any]:
        """The study file, parsed."""
        return tomllib.loads(self.text)

    @property
    def title(self) -> str:
        """The title of the study."""
        return str(self.file.get("title", self.header.name))

    @property
    def digest(self) -> str:
        """The hash of the file."""
        return self.header.digest

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of this library, Python and the packages that determine the numbers."""
        return self.header.versions

    @property
    def dropped(self) -> int:
        """Broken lines that were skipped; their work is repeated."""
        return 0

    @property
    def progress(self) -> tuple[int, int]:
        """The number of records so far, and of all."""
        return 0, 0

    def unfinished(self) -> Iterator[str]:
        """What is missing or was left out, one sentence for each."""
        done, wanted = self.progress
        if done < wanted:
            yield f"Unfinished: {done:,} of {wanted:,} records. The tables cover these; resume the work for the rest."
            if self.dropped:
                yield left_out(self.dropped)

    def to_dict(self) -> dict[str, Any]:
        """The results except the claims as plain JSON values."""
        done, wanted = self.progress
        return {"records": done, "wanted": wanted}


def left_out(broken: int) -> str:
    """What an unfinished work says of the broken lines in its records; a finished one lacks nothing."""
    was = "was" if broken == 1 else "were"
    lines = phrases.count(broken, "broken line")
    return f"{lines} in the records, as a kill leaves them, {was} left out; resuming repeats the work."


def text_digest(text: str) -> str:
    """The hash that names a study file."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_header(folder: Path, kind: WorkKind, head: type[H]) -> tuple[H, str]:
    """A study's header, and its file. Raises DataError if the folder contains none."""
    path, header = folder / kind.marker, read_marker(folder, kind)
    if header is None or not (folder / FILE).exists():
        what = kind.name.partition(" ")[2]
        raise DataError(f"{folder} contains no {what} ({kind.marker}): give the folder that raison study run wrote.")
    check_schema(header, path, SCHEMA)
    text = study_text(folder)
    try:
        file = toml_value(text)
    except ValueError as error:
        raise DataError(f"{folder / FILE} is not TOML ({error}): restore it.") from None
    # The first version left the claims to the study file.
    known = header if "claims" in header else header | {"claims": file.get("claims", [])}
    return read_written(head, known, f"the head of {kind.name}", path), text


def check_claimed(folder: Path, what: str, names: Iterable[str], known: Container[str]) -> None:
    """DataError for a `what` in a header's claims that its study does not have: no study file is read so."""
    for name in names:
        if name not in known:
            raise DataError(f"{folder} has a claim about the {what} '{name:.60}', which its study does not have.")


def study_text(folder: Path) -> str:
    """A folder's study file, "" if there is none. Raises DataError."""
    try:
        return (folder / FILE).read_text(encoding="utf-8") if (folder / FILE).exists() else ""
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the study in {folder}: {error}.") from None


def header_of(study: Any, limit: int | None) -> dict[str, Any]:
    """The header that all kinds share; `study` is a raison.studies.file.Study."""
    return {
        "schema": SCHEMA,
        "kind": study.kind.name,
        "name": study.name,
        "digest": study.digest,
        "limit": limit,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of this library, Python and the packages that determine the numbers."""
    return {"raison": __version__, **identity.versions()}


def check_folder(folder: Path, study: Any, limit: int | None, resume: bool) -> None:
    """DataError unless the study may write here: the folder must contain no study or, with `resume`, this one.

    Checked before models and data are loaded; `check_header` checks the rest.
    """
    kind = study.kind.folder
    refuse_others(folder, kind)
    known = read_marker(folder, kind)
    if known is None:
        return
    if known.get("digest") != study.digest:
        refuse(folder, "study", [SETTINGS])
    if known.get("limit") != limit:
        rows = "all rows" if known.get("limit") is None else f"--limit {known['limit']}"
        raise DataError(
            f"{folder} contains this study with {rows}: use the same limit, or choose another folder for --out."
        )
    if not resume:
        raise DataError(
            f"{folder} already contains this study: continue it with --resume, or choose another folder for --out."
        )


def check_header(
    folder: Path, kind: WorkKind, header: Mapping[str, Any], parts: Mapping[str, RunHead] | None = None
) -> None:
    """DataError that names the differences if the folder contains other work of this kind. Touches nothing.

    `parts` are headers of comparisons in it: a model or data that have changed are found before the first one starts.
    """
    refuse_others(folder, kind)
    known = read_marker(folder, kind)
    if known is not None and IDENTITY in header:
        check(folder, kind.noun, known, header[IDENTITY])
        # As it would be read from the file, where tuples are lists.
        written = json.loads(json.dumps(header))
        keys = (known.keys() & written.keys()) - set(UNCOMPARED)
        refuse(folder, kind.noun, sorted(key for key in keys if known.get(key) != written.get(key)))
    for name, part in (parts or {}).items():
        if (folder / name / HEADER).exists():
            check_same(folder / name, part)


def begin_study(folder: Path, kind: WorkKind, header: Mapping[str, Any], text: str) -> None:
    """Write the header, then the study file, if missing; existing ones are checked again."""
    if read_marker(folder, kind) is None:
        write_marker(folder, kind, header)
    check_header(folder, kind, header)
    if text and not (folder / FILE).exists():
        write_whole(folder / FILE, text)
