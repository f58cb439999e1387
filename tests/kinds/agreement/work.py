"""A study of agreement: what it takes, and its jobs, a few texts each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from raison.studies.kinds.agreement.results import STORE, read, store_of  # type: ignore[import-not-found]

from raison.data import Dataset
from raison.data.digest import dataset_digest
from raison.explaining.explain import explain
from raison.jobs.engine import Job
from raison.jobs.identity import DATA, IDENTITY, SETTINGS, digest_of
from raison.jobs.origins import Origins
from raison.jobs.store import RecordStore
from raison.methods import CATALOGUE
from raison.models.derived.identity import identity_of
from raison.numerics.measures.agreement import spearman
from raison.progress import ProgressCallback
from raison.report.tables.records import Cell, Table
from raison.studies import kind
from raison.studies.data_loading import load_rows
from raison.studies.file import Study, StudyError
from raison.studies.folder import header_of, versions
from raison.studies.kind import EstimateTable
from raison.studies.plans import Models, load_named_model, unable, unreadable_texts

REUSED = (STORE,)
FEW = 3


@dataclass(frozen=True, kw_only=True)
class Examined(kind.Examined):
    """A study that can be run."""

    data: Dataset


def examine(study: Study, limit: int | None = None, _sources: Sequence[Path] = ()) -> Examined:
    """Load the model and the data. Raises StudyError with what stands in the way."""
    spec = study.spec
    data, model = load_rows(spec.data, limit), load_named_model(spec.model)
    reasons = unable(model, [CATALOGUE.create(method) for method in spec.methods])
    reasons += unreadable_texts(model, data, "word", False)
    if reasons:
        raise StudyError(study.path, reasons)
    identity = {**identity_of(model), DATA: dataset_digest(data), SETTINGS: study.digest}
    claims = [one.to_dict() for one in spec.claims]
    asked = {"methods": list(spec.methods), "texts": len(data), "claims": claims, IDENTITY: identity}
    return Examined(study=study, header={**header_of(study, limit), **asked}, data=data)


def begin(examined: Examined, folder: Path, sources: Sequence[Path]) -> None:
    """Take over records."""
    _origins(examined).take_over(store_of(folder), sources)


def _origins(examined: Examined) -> Origins:
    identity = {**examined.header[IDENTITY], DATA: "", SETTINGS: "", "versions": digest_of(versions())}
    texts, pairs = examined.data.texts, examined.study.spec.pairs
    keys = [(one, other, text) for one, other in pairs for text in range(len(texts))]
    return Origins(("first", "second", "text"), {key: digest_of([identity, *key[:2], texts[key[2]]]) for key in keys})


def jobs(examined: Examined, folder: Path, shard: int | None = None) -> list[Job]:
    """A few texts by all methods."""
    known, models, spec = read(folder).values, Models(), examined.study.spec
    found = []
    for start in range(0, len(examined.data), FEW):
        texts = range(start, min(start + FEW, len(examined.data)))
        done = all(text in known[one, other] for one, other in spec.pairs for text in texts)
        run = partial(_compare, examined, models, store_of(folder, shard), texts)
        found.append(Job(f"texts {start}", "agreement", run, partial(bool, done), len(texts), len(texts)))
    return found


def _compare(examined: Examined, models: Models, store: RecordStore, texts: range, told: ProgressCallback) -> None:
    spec = examined.study.spec
    chosen = [examined.data.texts[text] for text in texts]
    model = models.of(spec.model)
    scores = {method: [np.array(e.scores) for e in explain(model, chosen, method=method)] for method in spec.methods}
    lines = [
        {"first": one, "second": other, "text": text, "value": float(np.nan_to_num(spearman(a, b)))}
        for one, other in spec.pairs
        for text, a, b in zip(texts, scores[one], scores[other], strict=True)
    ]
    store.append(map(_origins(examined).stamped, lines))
    told(len(texts))


def estimate(examined: Examined) -> EstimateTable:
    """How many explanations."""
    count = len(examined.data) * len(examined.study.spec.methods)
    return EstimateTable(Table("", ("data", "explanations"), ((examined.data.name, (Cell(f"{count:,}"),)),)), (), {})
