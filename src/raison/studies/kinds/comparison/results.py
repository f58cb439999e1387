"""A study's folder: the study file as it was run, and one run for every model and data set.

    study.toml   the study file
    study.json   schema, digest, versions, the runs' folders in order
    RUN/         run.json, records.jsonl, ... (see raison.runs.run)

A folder that `raison compare --out` wrote reads as a study of one run.
"""

import hashlib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.jobs.folder import FILE as FILE
from raison.runs.checked import check_schema, check_study
from raison.runs.run import HEADER, SCHEMA, Run, read_run, settings_hash

STUDY = "study.json"


@dataclass(frozen=True, slots=True)
class StudyRuns:
    """`text` is the study file ("" for a single comparison), `digest` its hash; `claims` are the file's own."""

    folder: Path
    name: str
    text: str
    digest: str
    versions: dict[str, str]
    runs: dict[str, Run]

    @property
    def file(self) -> dict[str, Any]:
        """The study file, parsed."""
        return tomllib.loads(self.text)

    @property
    def title(self) -> str:
        """What the study is called."""
        return str(self.file.get("title", self.name))

    @property
    def claims(self) -> list[dict[str, Any]]:
        """What the study states before it is run."""
        return list(self.file.get("claims", []))


def digest_of(text: str) -> str:
    """The hash that names a study file."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_study(folder: Path) -> StudyRuns:
    """What a study, or a single comparison, has written so far. Raises DataError if the folder holds neither."""
    if (folder / HEADER).exists():
        run = read_run(folder)
        name = folder.resolve().name
        return StudyRuns(folder, name, "", settings_hash(run.header), run.header["versions"], {name: run})
    try:
        header = json.loads((folder / STUDY).read_text(encoding="utf-8"))
        text = (folder / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(
            f"{folder} holds neither a study ({STUDY}) nor a comparison ({HEADER}): give the folder that "
            "raison study run or raison compare --out wrote."
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the study in {folder}: {error}.") from None
    check_schema(header, folder / STUDY, SCHEMA)
    check_study(header, folder / STUDY)
    runs = {name: read_run(folder / name) for name in header["runs"] if (folder / name / HEADER).exists()}
    return StudyRuns(folder, header["name"], text, header["digest"], header["versions"], runs)
