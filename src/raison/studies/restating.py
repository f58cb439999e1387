"""State a study's claims anew, about records that exist: nothing is loaded, and nothing is run.

The folder keeps what was changed after its records had been seen. A claim that it did not have must say so by its
caveat, and one that is left out stays in the header as withdrawn.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.jobs.disk import write_whole
from raison.jobs.folder import FILE, read_marker, working_in, write_marker
from raison.jobs.identity import IDENTITY, SETTINGS
from raison.studies.file import Study, StudyError, read, without_permission
from raison.studies.folder import study_text

WORDS = ("title", "about", "source", "reference", "claims")
"""The keys of a study file that no record depends on."""

Stated = Mapping[str, Any]
"""A claim as a header has it."""


@dataclass(frozen=True, slots=True)
class Restated:
    """The number of a folder's claims, and what those say that were added and those that were withdrawn."""

    claims: int
    added: tuple[str, ...]
    withdrawn: tuple[str, ...]


def restate(file: str | Path, folder: str | Path) -> Restated:
    """Replace the claims of a study's folder, its title and what it is about by those of a study file.

    Args:
        file: a study file that differs from the folder's in `WORDS` alone.
        folder: what `raison study run` wrote.

    Raises:
        StudyError: with every mistake of the file, and every claim whose caveat hides that the records came first.
        DataError: for a folder of something else, a file that asks for other records, or another process at work.
    """
    study, folder = read(file), Path(folder)
    kind = study.kind.folder
    if not folder.is_dir() or read_marker(folder, kind) is None:
        raise DataError(f"{folder} contains no {kind.name.partition(' ')[2]}: give the folder of a run of {file}.")
    with working_in(folder, kind):
        header, known = read_marker(folder, kind) or {}, study.kind.results.read(folder).header
        _refuse_other_records(study, study_text(folder), folder)
        # The first version left the claims to the study file, where rows are not named as in the records.
        before = _stated(known if "claims" in header else read(folder / FILE, study.tools).spec)
        claims = _stated(study.spec)
        if mistakes := list(_unmarked(claims, before)):
            raise StudyError(study.path, mistakes)
        added = [one for one in claims if _as_before(one, before) is None]
        withdrawn = [one for one in before if _as_before(one, claims) is None]
        earlier = [one for one in known.withdrawn if _as_before(one, [*claims, *withdrawn]) is None]
        changed = {"digest": study.digest, "claims": claims, "withdrawn": [*earlier, *withdrawn]}
        if header.get(IDENTITY, {}).get(SETTINGS) == header["digest"]:
            changed[IDENTITY] = header[IDENTITY] | {SETTINGS: study.digest}
        # After a kill between the two, doing it again does the rest: only the header has been compared.
        write_whole(folder / FILE, study.text)
        write_marker(folder, kind, header | changed)
    return Restated(len(claims), *(tuple(str(one["says"]) for one in some) for some in (added, withdrawn)))


def _stated(spec: Any) -> list[Stated]:
    """The claims of a study's header, or of its file; an audit has none."""
    return [claim.to_dict() for claim in getattr(spec, "claims", ())]


def _refuse_other_records(study: Study, text: str, folder: Path) -> None:
    asked, written = (tomllib.loads(without_permission(content)) for content in (study.text, text))
    others = sorted(key for key in (asked.keys() | written.keys()) - {*WORDS} if asked.get(key) != written.get(key))
    if others:
        raise DataError(
            f"{study.path} differs from what {folder} was run with in {', '.join(others)}: its records answer other "
            f"questions. Restate only {', '.join(WORDS[:-1])} and {WORDS[-1]}, or run it in a new folder "
            f"(raison study run {study.path} --out NEW --reuse {folder})."
        )


def _unmarked(claims: Sequence[Stated], before: Sequence[Stated]) -> Iterator[str]:
    """The claims that were stated after the records and do not say so, or no longer."""
    for number, claim in enumerate(claims, start=1):
        known = _as_before(claim, before)
        caveat, earlier = claim.get("caveat"), None if known is None else known.get("caveat")
        if known is None and caveat is None:
            why = 'it is new after the records, which may have been seen: add caveat = "exploratory".'
        elif earlier == "exploratory" and caveat != earlier:
            why = 'it was stated after the records, which may have been seen: keep caveat = "exploratory".'
        elif earlier is not None and caveat is None:
            why = f'it had a caveat that no record takes away: keep caveat = "{earlier}".'
        else:
            continue
        yield f"[[claims]] number {number}: {why}"


def _as_before(claim: Stated, others: Sequence[Stated]) -> Stated | None:
    """The one among others that compares the same, whatever it says."""
    return next((one for one in others if _compared(one) == _compared(claim)), None)


def _compared(claim: Stated) -> dict[str, Any]:
    return {name: value for name, value in claim.items() if name not in ("says", "caveat")}
