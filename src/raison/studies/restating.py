"""State a study's claims anew, about records that exist: nothing is loaded, and nothing is run.

The folder keeps what was changed after its records had been seen. A claim that it did not have must say so by its
caveat, and one that is left out stays in the header as withdrawn.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import DataError
from raison.core.settings.tables import read_written
from raison.jobs.disk import write_whole
from raison.jobs.folder import FILE, read_marker, working_in, write_marker
from raison.jobs.identity import IDENTITY, SETTINGS
from raison.studies.file import Study, StudyError, read, without_permission
from raison.studies.folder import Claim, FormerClaim, StudyHead, WrittenStudy, study_text, text_digest
from raison.studies.kind import kind_of

WORDS = ("title", "about", "source", "reference", "claims")
"""The keys of a study file that no record depends on."""


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
    if study.path.resolve() == (folder / FILE).resolve():
        raise DataError(f"{study.path} is the folder's own record of its study: change a copy of it, and give that.")
    with working_in(folder, kind):
        header, results = read_marker(folder, kind) or {}, study.kind.results.read(folder)
        known: StudyHead = results.header
        _refuse_other_records(study, study_text(folder), str(header.get("digest")), folder)
        # The first version left the claims to the study file, where rows are not named as in the records.
        before = known.claims if "claims" in header else _claims(read(folder / FILE, study.tools))
        claims = _claims(study)
        former = [*_former(known.withdrawn, [*claims, *before], folder / kind.marker)]
        if mistakes := [*_unmarked(claims, before, former), *_unrecorded(claims, before, results)]:
            raise StudyError(study.path, mistakes)
        added = [one for one in claims if _among(before, one) is None]
        withdrawn = [one for one in before if _among(claims, one) is None]
        earlier: Sequence[Claim | FormerClaim] = [one for one in former if _among([*claims, *withdrawn], one) is None]
        changed = {
            "name": study.name,
            "digest": study.digest,
            "claims": [one.to_dict() for one in claims],
            "withdrawn": [one.to_dict() for one in (*(earlier if former else known.withdrawn), *withdrawn)],
        }
        if header.get(IDENTITY, {}).get(SETTINGS) == header["digest"]:
            changed[IDENTITY] = header[IDENTITY] | {SETTINGS: study.digest}
        # After a kill between the two, doing it again writes the file: the header names it already.
        write_marker(folder, kind, header | changed)
        write_whole(folder / FILE, study.text)
        return Restated(len(claims), *(tuple(one.says for one in some) for some in (added, withdrawn)))


def _claims(study: Study) -> tuple[Claim, ...]:
    """The claims of a study file; an audit has none."""
    return tuple(getattr(study.spec, "claims", ()))


def _former(withdrawn: Sequence[FormerClaim], others: Sequence[Claim], path: Path) -> Iterator[Claim]:
    """Withdrawn claims as claims of the same sort as others; none if there are no others. Raises DataError."""
    for sort in [*map(type, others)][:1]:
        yield from (read_written(sort, one.to_dict(), "a withdrawn claim", path) for one in withdrawn)


def _refuse_other_records(study: Study, text: str, digest: str, folder: Path) -> None:
    """DataError unless `text`, the folder's file, is the one that its header names and asks for the same records."""
    asked, written = (tomllib.loads(without_permission(content)) for content in (study.text, text))
    others = sorted(key for key in (asked.keys() | written.keys()) - {*WORDS} if asked.get(key) != written.get(key))
    if others:
        raise DataError(
            f"{study.path} differs from what {folder} was run with in {', '.join(others)}: its records answer other "
            f"questions. Restate only {', '.join(WORDS[:-1])} and {WORDS[-1]}, or run it in a new folder "
            f"(raison study run {study.path} --out NEW --reuse {folder})."
        )
    if digest not in (text_digest(without_permission(text)), study.digest):
        raise DataError(f"{folder / FILE} is not the file that {folder} was run with: it was changed. Restore it.")


def _unmarked(claims: Sequence[Claim], before: Sequence[Claim], withdrawn: Sequence[Claim]) -> Iterator[str]:
    """The claims that were stated after the records and do not say so, or no longer."""
    for number, claim in enumerate(claims, start=1):
        known = _among([*before, *withdrawn], claim)
        earlier = None if known is None else known.caveat
        if claim.caveat is None and _among(before, claim) is None:
            why = 'it is new after the records, which may have been seen: add caveat = "exploratory".'
        elif earlier == "exploratory" and claim.caveat != earlier:
            why = 'it was stated after the records, which may have been seen: keep caveat = "exploratory".'
        elif earlier is not None and claim.caveat is None:
            why = f'it had a caveat that no record takes away: keep caveat = "{earlier}".'
        else:
            continue
        yield f"[[claims]] number {number}: {why}"


def _unrecorded(claims: Sequence[Claim], before: Sequence[Claim], results: WrittenStudy) -> Iterator[str]:
    """The new claims that finished records say nothing of, in no place."""
    done, wanted = results.progress
    if done < wanted:
        return
    known = kind_of(results.folder).results
    for number, claim in enumerate(claims, start=1):
        if _among(before, claim) is not None:
            continue
        places = known.places(results, claim)
        found = (known.sample(results, claim, place) for place in places)
        if not any(sample is not None and len(sample.first) for sample in found):
            yield f"[[claims]] number {number}: the records of {results.folder} do not have what it compares."


def _among(others: Sequence[Claim], claim: Claim) -> Claim | None:
    """The one of them that claims the same, in whatever words."""
    return next((one for one in others if one.stated == claim.stated), None)
