"""A study file, which is read in one way for all kinds and checked by its own kind.

    schema = 1
    kind = "trust"
    title = "..."

The other keys are the kind's, in raison.studies.kinds.KIND.spec; a file that names no kind is a comparison.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from raison.core.errors import MISTAKE, DataError, UnknownNameError
from raison.core.settings.reading import toml_value
from raison.core.settings.tables import read as read_table
from raison.studies.folder import Claim, decides, text_digest
from raison.studies.kind import DEFAULT, Kind, every

T = TypeVar("T")

SCHEMA = 1
_SIZES = ("mini", "paper")
_PLAIN = "study"
_GOES_ON = re.compile(r"(?m)^[ \t]*even_at_chance[ \t]*=.*\n?")
"""The key that lets a study continue in its folder after it stopped because a model was at chance."""


class MistakesError(DataError):
    """The mistakes that a kind finds in its file, one per line."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = tuple(mistakes)


class StudyError(DataError):
    """A study that cannot be run; the message lists every mistake on its own line."""

    def __init__(self, path: Path, mistakes: Sequence[str]) -> None:
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        super().__init__(MISTAKE.join([f"{path} cannot be run because of {count}:", *mistakes]))
        self.mistakes = tuple(mistakes)


@dataclass(frozen=True, slots=True)
class Study:
    """A study file without mistakes: `spec` is its kind's record, `tools` the functions that it calls."""

    path: Path
    text: str
    kind: Kind
    title: str
    spec: Any
    tools: Any = None

    @property
    def digest(self) -> str:
        """The hash of the file's content, without the key that only allows resuming; "" without a file."""
        return text_digest(without_permission(self.text)) if self.text else ""

    @property
    def name(self) -> str:
        """The file's name, with the folder's name if all study files have the same name."""
        stem, folder = self.path.stem, self.path.resolve().parent.name
        if stem == _PLAIN:
            return folder or stem
        return f"{folder}-{stem}" if stem in _SIZES and folder else stem


def read(path: str | Path, tools: object = None) -> Study:
    """Read a study file. Raises DataError for one that is missing or not TOML, StudyError with all other mistakes."""
    path = Path(path)
    text = _text_of(path)
    try:
        table = toml_value(text)
    except ValueError as error:
        # Python's own words; they name the line and the column.
        message = str(error)
        raise DataError(f"{path} is not TOML: {message[:1].lower() + message[1:].rstrip('.')}.") from None
    kinds, name = {kind.name: kind for kind in every()}, table.get("kind", DEFAULT)
    if name not in kinds:
        raise StudyError(path, [f"the study: {UnknownNameError('kind', str(name), kinds)}"])
    kind = kinds[name]
    used = kind.spec.tools() if tools is None else tools
    try:
        spec = kind.spec.parse(table, path.parent, used)
    except MistakesError as error:
        raise StudyError(path, error.mistakes) from None
    if repeated := list(_repeated(getattr(spec, "claims", ()))):
        raise StudyError(path, repeated)
    return Study(path, text, kind, table["title"], spec, used)


def without_permission(text: str) -> str:
    """A file's content without the key that only allows resuming."""
    return _GOES_ON.sub("", text)


def _repeated(claims: Sequence[Claim]) -> Iterator[str]:
    """The claims that an earlier one decides: they would count twice."""
    compared = [claim.compared for claim in claims]
    for number, own in enumerate(compared, start=1):
        known = next((at for at, one in enumerate(compared[: number - 1], start=1) if decides(own, one)), None)
        if known is not None:
            decided = f"it compares the same rows as number {known}, whose verdict decides it"
            yield f"[[claims]] number {number}: {decided}; leave one out."


def entries_of(
    record: type[T], table: Mapping[str, Any], without: Mapping[str, str] | None = None
) -> tuple[T, list[str]]:
    """A file as its kind's record, and the mistakes in its entries; MistakesError if the schema is newer.

    `without` gives the reasons why a kind lacks keys that others have.
    """
    schema = table.get("schema", SCHEMA)
    if isinstance(schema, int) and schema != SCHEMA:
        reads = f"this version of raison reads {SCHEMA}: write schema = {SCHEMA}, or update raison"
        raise MistakesError([f"the study: schema is {schema}, and {reads}."])
    return read_table(record, table, without=without)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path} is missing: give a study file (.toml).") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}): save it as UTF-8.") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from None
