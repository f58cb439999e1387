"""What a study's report knows of each run, and what must be said beside its numbers."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raison.core.results import Comparison
from raison.report import phrases
from raison.report.examples import Example, asked_in
from raison.runs.agreement import PairAgreement
from raison.runs.models_figure import Place
from raison.runs.run import Run
from raison.runs.table import finished_texts
from raison.studies.kinds.comparison.results import STUDY, StudyRuns


@dataclass(frozen=True, slots=True)
class Section:
    """One run; `table` is None while no text is finished, `texts` the page that lists its texts, if any.

    `examples` are those of each text, where the study asks for them.
    """

    name: str
    title: str
    run: Run
    table: Comparison | None
    agreement: tuple[PairAgreement, ...]
    texts: str | None
    examples: tuple[tuple[Example, ...], ...] = ()


def limit_of(study: StudyRuns) -> int | None:
    """The --limit that the study was run with."""
    path = study.folder / STUDY
    if not path.exists():
        return None
    limit = json.loads(path.read_text(encoding="utf-8")).get("limit")
    return None if limit is None else int(limit)


def places_of(study: StudyRuns, sections: Sequence[Section]) -> tuple[Place, ...]:
    """Where each run's model stands in a figure over models; sizes only where the study wrote them down."""
    path = study.folder / STUDY
    known = json.loads(path.read_text(encoding="utf-8")).get("models", {}) if path.exists() else {}
    keys = [section.name.partition("--")[0] for section in sections]
    return tuple(Place(key, known.get(key, {}).get("parameters")) for key in keys)


def note(study: StudyRuns, section: Section) -> str:
    """The end of a table's caption: seeds, and what names these numbers."""
    seeds = list(dict.fromkeys(seed for row in section.run.header["rows"] for seed in row["seeds"]))
    several = f"Methods that draw are means over the seeds {', '.join(map(str, seeds))}. " if len(seeds) > 1 else ""
    return f"{several}{study.title}, digest {study.digest}, raison {section.run.header['raison']}."


def warnings(study: StudyRuns, sections: Sequence[Section]) -> list[str]:
    """Everything that makes these numbers other than those of the whole study, one sentence each."""
    found = []
    limit = limit_of(study)
    if limit is not None:
        found.append(
            f"This study was run with --limit {limit}: at most {phrases.count(limit, 'text')} of each data set."
        )
    found += [f"{name}: this run has not begun." for name in _missing_runs(study)]
    for section in sections:
        found += [f"{section.name}: {sentence}" for sentence in _of_run(section, asked_in(study.file) is not None)]
    return found


def _missing_runs(study: StudyRuns) -> list[str]:
    path = study.folder / STUDY
    names = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    return [name for name in names if name not in study.runs]


def _of_run(section: Section, with_examples: bool) -> Iterator[str]:
    run = section.run
    done, wanted = len(finished_texts(run)), run.header["texts"]
    if done < wanted:
        yield f"unfinished: {done:,} of {phrases.count(wanted, 'text')}. The table is of these; the run can go on."
    absent = _missing_groups(run)
    if absent:
        yield f"the metrics of all texts are not measured yet for every row: {', '.join(absent)}."
    if run.dropped:
        yield (
            f"{phrases.count(run.dropped, 'broken line')} of the records, as a kill leaves them, "
            "left out; continuing the run does their work again."
        )
    if run.records and section.texts is None:
        pages = "pages of single texts" + (" and of examples" if with_examples else "")
        yield f"records only: {pages} need explanations.jsonl, which is not in this folder."


def _missing_groups(run: Run) -> list[str]:
    keys = [(row["label"], seed) for row in run.header["rows"] for seed in row["seeds"]]
    grouped = [metric["label"] for metric in run.header["metrics"] if metric["grouped"]]
    return [metric for metric in grouped if any((*key, metric) not in run.groups for key in keys)]
