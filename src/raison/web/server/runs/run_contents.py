"""The contents of a folder as rows of lines: the records of a comparison, or the explanations of files."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from raison.core.errors import DataError
from raison.core.note_names import EACH_FROM
from raison.core.results.explanation import Explanation
from raison.data.class_labels import known_classes
from raison.jobs.folder import EXPLANATIONS
from raison.jobs.identity import IDENTITY, Identity
from raison.report.explanations.listed import Listable, strongest_of
from raison.runs.files import folder as files
from raison.runs.files.flat_records import FlatRecord, explanation_of, result_of
from raison.runs.headers import RunHead
from raison.runs.record import Record
from raison.runs.record import plain as plain_value
from raison.runs.run import HEADER, Run, read_header, read_run
from raison.web.rows.lines import (
    AbsentError,
    MetricFacts,
    RowFacts,
    RowKey,
    RunFacts,
    RunLine,
    line_of,
    shown_text,
    top_of,
)

MARKERS = (HEADER, EXPLANATIONS.marker)
"""Files that identify a folder."""
PARTS = (files.SHARDS, files.RECEIPTS)
"""Subfolders whose files belong to it."""
GIVES = {"outputs": "output", "citations": "answer"}
"""The kinds of output of generative models, by the kind of a file's rows."""
TEXTS = 50_000
"""Maximum number of texts of a run that can be shown; for explained files, the first ones."""


class RunContents(ABC):
    """A run's folder, called `name`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder

    @property
    @abstractmethod
    def facts(self) -> RunFacts:
        """The facts about the run. Raises DataError."""

    @property
    @abstractmethod
    def identity(self) -> Identity:
        """The run's identity: digests of its model, its data and its settings; empty if unknown."""

    @abstractmethod
    def lines(self, place: RowKey) -> tuple[RunLine, ...]:
        """The texts of a row. Raises AbsentError, DataError."""

    @abstractmethod
    def explanations(self, place: RowKey) -> Iterator[Explanation]:
        """The explanations of the same texts. Raises AbsentError, DataError."""

    @abstractmethod
    def explanation(self, place: RowKey, number: int) -> Listable:
        """The explanation of one text, or of the output written after it. Raises AbsentError, DataError."""

    def _absent(self, what: str) -> AbsentError:
        return AbsentError(f"{self.name} has no {what}.")


def contents_of(name: str, folder: Path) -> RunContents:
    """The contents of the folder."""
    return FileContents(name, folder) if files.is_folder(folder) else ComparisonContents(name, folder)


class ComparisonContents(RunContents):
    """A comparison."""

    @cached_property
    def facts(self) -> RunFacts:
        head = read_header(self.folder / HEADER)
        return RunFacts(
            run=self.name,
            model=head.model,
            data=head.data,
            texts=head.texts,
            unit=head.settings.unit,
            of=head.settings.of,
            gives=head.outputs or "classes",
            rows=tuple(RowFacts(row.label, row.method, row.seeds, row.selected_by) for row in head.rows),
            metrics=tuple(MetricFacts(metric.label, metric.higher_is_better) for metric in head.single),
            explained=any(self.folder.glob("explanations*.jsonl*")),
            labelled=_are_labels(head.settings.raw.get("target"), head),
        )

    @property
    def identity(self) -> Identity:
        return _identity_in(read_header(self.folder / HEADER).raw)

    @cached_property
    def _run(self) -> Run:
        if self.facts.texts > TEXTS:
            raise DataError(f"the run has {self.facts.texts:,} texts, and at most {TEXTS:,} can be shown.")
        return read_run(self.folder)

    def lines(self, place: RowKey) -> tuple[RunLine, ...]:
        self._check(place)
        run, lines = self._run, []
        # A run that goes on has the explanations of some texts.
        explained = run.explained(place.row, place.seed)
        following = next(explained, None)
        for number in range(run.header.texts):
            e = None
            if following is not None and following[0] == number:
                e, following = following[1], next(explained, None)
            if (place.row, place.seed, number) in run.records:
                lines.append(self._line(run.records[place.row, place.seed, number], e))
        return tuple(lines)

    def explanations(self, place: RowKey) -> Iterator[Explanation]:
        self._check(place)
        run = self._run
        if not run.has_explained(place.row, place.seed):
            # The error says that there are only records.
            return iter(run.explanations(place.row, place.seed))
        return (e for _, e in run.explained(place.row, place.seed))

    def explanation(self, place: RowKey, number: int) -> Explanation:
        if (place.row, place.seed, number) not in self._run.records:
            raise self._absent(f"text {number} of {place.row:.80} under seed {place.seed}")
        return self._run.explanation(place.row, place.seed, number)

    def _check(self, place: RowKey) -> None:
        if (place.row, place.seed) not in self._run.header.keys:
            raise self._absent(f"row {place.row!r:.80} under seed {place.seed}")

    def _line(self, record: Record, e: Explanation | None) -> RunLine:
        metrics = [metric.label for metric in self._run.header.single]
        return RunLine(
            number=record.text,
            id="",
            text=None if e is None else shown_text(e),
            label=record.target if self.facts.labelled else None,
            prediction=record.prediction,
            target=record.target,
            confidence=None if e is None else e.confidence,
            value=None if e is None else e.number,
            units=record.units,
            top=None if e is None else top_of(e),
            evaluations=record.costs.evaluations,
            gradients=record.costs.gradients,
            seconds=record.costs.seconds,
            scores={label: plain_value(score) for label, score in zip(metrics, record.scores, strict=True)},
            strongest=() if e is None else strongest_of(e),
        )


def _are_labels(target: object, head: RunHead) -> bool:
    """Whether a comparison's targets are its texts' own classes: neither pairs, nor what the model predicts."""
    if not isinstance(target, list) or len(target) != head.texts or EACH_FROM in head.settings.raw:
        return False
    return all(isinstance(one, str | int) for one in target)


class FileContents(RunContents):
    """The explanations of files: the complete shards, as one row that is named by its method."""

    @cached_property
    def facts(self) -> RunFacts:
        written = files.read(self.folder)
        manifest, first = written.manifest, next(self._records(), None)
        settings = manifest.raw.get("settings")
        if not isinstance(settings, dict):
            raise DataError(f"{self.folder / EXPLANATIONS.marker} names no settings.")
        return RunFacts(
            run=self.name,
            model=manifest.model,
            data=", ".join(Path(source).name for source in manifest.sources[:3]),
            texts=self._count(written),
            unit="source" if manifest.explains == "citations" else str(settings.get("unit")),
            of="" if first is None else first["of"],
            gives=GIVES.get(manifest.explains, manifest.outputs),
            rows=(RowFacts(manifest.method, manifest.method, (0,), None),),
            metrics=(),
            explained=True,
            labelled=first is not None and self._gives_classes(manifest) and _any_class(written, result_of(first)),
        )

    @property
    def identity(self) -> Identity:
        return _identity_in(files.read(self.folder).manifest.raw)

    def lines(self, place: RowKey) -> tuple[RunLine, ...]:
        self._check(place)
        lines, labels = [], []
        classes: tuple[str, ...] = ()
        for number, record in enumerate(self._records()):
            e = result_of(record)
            lines.append(line_of(number, e, record["id"]))
            labels.append(record.get("label") or "")
            classes = _classes_of(e)
        of_texts, _ = known_classes(labels, classes)
        return tuple(replace(line, label=label) for line, label in zip(lines, of_texts, strict=True))

    def explanations(self, place: RowKey) -> Iterator[Explanation]:
        self._check(place)
        return map(explanation_of, self._records())

    def explanation(self, place: RowKey, number: int) -> Listable:
        self._check(place)
        written, start = files.read(self.folder), 0
        if written.manifest.explains == "citations":
            # An answer has a row for each statement, so the receipts do not give its place.
            record = next(islice(self._records(), number, None), None)
            if record is None:
                raise self._absent(f"answer {number}")
            return result_of(record)
        for shard, receipt in written.receipts.items():
            if number < start + receipt.explanations:
                return result_of(next(islice(written.of_shard(shard), number - start, None)))
            start += receipt.explanations
        raise self._absent(f"text {number}")

    def _records(self) -> Iterator[FlatRecord]:
        """The rows that become lines; for an answer the first, which has the complete result."""
        written = files.read(self.folder)
        rows = written.rows()
        if written.manifest.explains == "citations":
            rows = (row for row in rows if row["number"] == 0)
        return islice(rows, TEXTS)

    def _gives_classes(self, manifest: files.Manifest) -> bool:
        return manifest.explains == "predictions" and manifest.outputs == "classes"

    def _count(self, written: files.WrittenShards) -> int:
        if written.manifest.explains == "citations":
            return sum(row["number"] == 0 for row in written.rows(["number"]))
        return sum(receipt.explanations for receipt in written.receipts.values())

    def _check(self, place: RowKey) -> None:
        if (place.row, place.seed) != (self.facts.rows[0].label, 0):
            raise self._absent(f"row {place.row!r:.80} under seed {place.seed}")


def _classes_of(e: Listable) -> tuple[str, ...]:
    return e.classes if isinstance(e, Explanation) and e.outputs == "classes" else ()


def _any_class(written: files.WrittenShards, e: Listable) -> bool:
    """Whether the labels of the displayed rows are classes of the model, at least one of them."""
    labels = [str(row.get("label") or "") for row in islice(written.rows(["label"]), TEXTS)]
    return any(label is not None for label in known_classes(labels, _classes_of(e))[0])


def _identity_in(head: Mapping[str, object]) -> Identity:
    known = head.get(IDENTITY)
    return known if isinstance(known, dict) else {}


def belonging(folder: Path) -> Sequence[Path]:
    """The files and folders of a run."""
    entries = list(folder.iterdir())
    return entries + [file for part in entries if part.name in PARTS and part.is_dir() for file in part.iterdir()]
