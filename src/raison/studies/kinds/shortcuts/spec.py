"""The file of a study of shortcuts: is a word planted in few rows found, and how often is one reported by chance?

    schema = 1
    kind = "shortcuts"
    title = "..."
    word = "zyxel"
    label = "positive"
    shares = [0.005, 0.01]
    rows = 1000
    seeds = [0, 1, 2]
    draws = 20
    [data]
    source = "sst2"
    split = "train"
    limit = 15000
    [[claims]]
    says = "a word in 1 % of the rows of one class is found"
    above = "planted 0.01"
    than = "both 0.01"

For each seed and share, `rows` rows are drawn, and the word is put at the end of that share of them: "planted" in rows
of the class `label` only, "both" in the same number of rows of all classes, so that it is uninformative. A word-count
model is trained on the rows, occlusion explains its predictions, and raison.runs.words.decisive finds the deciding
words. "random": the same texts, `draws` times with random scores, in which no word decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from raison.core.settings.fields import Setting
from raison.core.settings.tables import FLAT
from raison.runs.headers import Seeds
from raison.runs.words import LEAST
from raison.studies import parts
from raison.studies.entries import About, StudyData
from raison.studies.file import MistakesError, entries_of
from raison.studies.kinds.shortcuts.results import RANDOM, ShortcutClaim, rows_of


@dataclass(frozen=True, slots=True)
class Shortcuts:
    """The file."""

    about: Annotated[About, FLAT]
    word: str
    label: str
    data: StudyData
    shares: tuple[float, ...] = (0.01,)
    rows: Annotated[int, Setting(least=1)] = 1000
    seeds: Seeds = (0,)
    draws: Annotated[int, Setting(least=1)] = 20
    claims: tuple[ShortcutClaim, ...] = ()


def tools() -> None:
    """Has no functions that tests would replace."""


def parse(table: Mapping[str, Any], place: Path, _tools: None) -> Shortcuts:
    """A parsed file in the folder `place`. Raises MistakesError with every mistake in it."""
    study, mistakes = entries_of(Shortcuts, table)
    if "word" in table and len(study.word.split()) != 1:
        mistakes.append(f"word: {study.word!r} is not one word.")
    if not study.shares or not all(0 < share <= 1 for share in study.shares):
        mistakes.append("shares: give shares of the rows, above 0 and at most 1, such as [0.01].")
    mistakes += [
        f"shares: {share:g} of {study.rows:,} rows are {round(share * study.rows)}, and a word in fewer than {LEAST} "
        "cannot be found: raise the share, or rows."
        for share in study.shares
        if 0 < share <= 1 and round(share * study.rows) < LEAST
    ]
    mistakes += parts.twice("shares", [f"{share:g}" for share in study.shares])
    mistakes += parts.data_mistakes(study.data, "[data]")
    known = parts.ClaimNames({"row": [*rows_of(study.shares), RANDOM]}, {"row": str})
    for where, claim in parts.read_claims(study.claims, mistakes):
        mistakes += known.rows(claim, where, "row")
    if mistakes:
        raise MistakesError(mistakes)
    return replace(study, data=parts.beside(place, study.data))
