"""The summary of a file's explanations: counts of predictions or of origins of statements, words, slowest rows."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from heapq import nlargest
from pathlib import Path

from raison.core.settings.tables import read_written
from raison.data.class_labels import known_classes
from raison.jobs import disk
from raison.jobs.store import read_record, write_record
from raison.runs.files.flat_records import Explains, FlatRecord
from raison.runs.files.folder import REJECTED, SUMMARY, WrittenShards, read

WORDS = 10
"""Number of words named for each target."""
KNOWN = 50_000
"""Maximum number of words that are counted; beyond it the half with the smallest sums is dropped."""
SLOWEST = 5
TOGETHER = {"outputs": "the outputs", "citations": "the statements"}
"""The common name of all targets of a generative model."""
_COLUMNS = (
    "row",
    "number",
    "id",
    "label",
    "target",
    "prediction",
    "place",
    "method",
    "units",
    "scores",
    "seconds",
    "evaluations",
    "gradients",
    "notes",
)


@dataclass(frozen=True, slots=True)
class WordSum:
    """A unit's text in lower case: how often it was scored for a target, and its scores' sum."""

    text: str
    target: str
    count: int
    total: float


@dataclass(frozen=True, slots=True)
class Slow:
    """A row that took long. A batch shares its time among its rows."""

    row: int
    id: str
    units: int
    passes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FileSummary:
    """The summary of all complete shards. `is_exact` says whether every word was counted (see KNOWN).

    Of the texts with a label that is a class of the model, `labelled` in number, `right` are predicted as labelled.
    `unread` labels are no classes of a model that has classes; `why_unread` says it of the first. `evaluations` counts
    the passes that several explanations of a text share once: there may be more.
    """

    rows: int
    explanations: int
    rejected: int
    evaluations: int
    gradients: int
    seconds: float
    bytes: int
    predictions: dict[str, int]
    targets: dict[str, int]
    methods: dict[str, int]
    words: tuple[WordSum, ...]
    slowest: tuple[Slow, ...]
    is_exact: bool
    labelled: int = 0
    right: int = 0
    unread: int = 0
    why_unread: str = ""


def of(written: WrittenShards) -> FileSummary:
    """The summary of the finished shards, from its file if it was written of all of them before. Raises DataError."""
    known = read_record(written.folder.path / SUMMARY) if written.is_complete else None
    if known is not None:
        return read_written(FileSummary, known, "a summary", written.folder.path / SUMMARY)
    return _counted(written)


def write(path: Path) -> None:
    """Write the summary and the rejected rows of a complete folder. Raises DataError."""
    written = read(path)
    lines = (json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in written.rejected)
    disk.write_whole(path / REJECTED, "".join(lines))
    write_record(path / SUMMARY, asdict(_counted(written)))


def _counted(written: WrittenShards) -> FileSummary:
    receipts = written.receipts.values()
    counts = _SummaryCounts(written.manifest.explains)
    for record in written.rows(_COLUMNS):
        counts.add(record)
    judged = counts.judged(_classes_of(written))
    return FileSummary(
        rows=written.done,
        explanations=sum(one.explanations for one in receipts),
        rejected=sum(len(one.rejected) for one in receipts),
        evaluations=sum(one.evaluations for one in receipts),
        gradients=sum(one.gradients for one in receipts),
        seconds=sum(one.seconds for one in receipts),
        bytes=sum(one.bytes for one in receipts),
        predictions=_ordered(counts.predictions),
        targets=_ordered(counts.targets),
        methods=_ordered(counts.methods),
        words=tuple(counts.heaviest()),
        slowest=tuple(counts.slowest),
        is_exact=counts.is_exact,
        labelled=judged.labelled,
        right=judged.right,
        unread=judged.unread,
        why_unread=judged.why,
    )


def _classes_of(written: WrittenShards) -> tuple[str, ...]:
    """The classes of the model; () if it has none of which one is predicted."""
    first = next(written.rows(["classes", "outputs"]), None)
    return tuple(first["classes"]) if first is not None and first["outputs"] == "classes" else ()


def _ordered(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda pair: (-pair[1], pair[0])))


@dataclass(frozen=True, slots=True)
class _Judged:
    labelled: int
    right: int
    unread: int
    why: str


@dataclass
class _SummaryCounts:
    explains: Explains
    predictions: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)
    methods: Counter[str] = field(default_factory=Counter)
    slowest: list[Slow] = field(default_factory=list)
    is_exact: bool = True
    _words: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    _labels: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often a label has a prediction; labels as in the data."""

    def add(self, record: FlatRecord) -> None:
        target = self._target(record)
        self._count_prediction(record)
        self.targets[target] += 1
        self.methods[record["method"]] += 1
        for unit, score in zip(record["units"], record["scores"], strict=True):
            key = target, (unit["name"] or unit["text"]).lower()
            count, total = self._words.get(key, (0, 0.0))
            self._words[key] = count + 1, total + score
        if len(self._words) > KNOWN:
            self.is_exact = False
            kept = nlargest(KNOWN // 2, self._words.items(), key=lambda item: (abs(item[1][1]), item[0]))
            self._words = dict(kept)
        passes = record["evaluations"] + record["gradients"]
        slow = Slow(record["row"], record["id"], len(record["units"]), passes, record["seconds"])
        if len(self.slowest) < SLOWEST or slow.seconds > self.slowest[-1].seconds:
            self.slowest = sorted([*self.slowest, slow], key=lambda one: (-one.seconds, one.row))[:SLOWEST]

    def _target(self, record: FlatRecord) -> str:
        """The target that words are counted for. Outputs are rarely equal, so all are counted together."""
        return str(record["target"]) if self.explains == "predictions" else TOGETHER[self.explains]

    def _count_prediction(self, record: FlatRecord) -> None:
        """Count a predicted class, or the origin of a statement. Outputs are not counted."""
        if self.explains == "predictions":
            # The labels of one text share its prediction; predictions at places are each their own.
            if record["number"] == 0 or record["place"] is not None:
                self.predictions[record["prediction"]] += 1
            # Many different labels are no classes.
            if record["number"] == 0 and record["place"] is None and len(self._labels) < KNOWN:
                self._labels[str(record["label"] or ""), record["prediction"]] += 1
        elif self.explains == "citations":
            self.predictions[json.loads(record["notes"]).get("origin", "unknown (no lights)")] += 1

    def judged(self, classes: tuple[str, ...]) -> "_Judged":
        """How many texts have a label that is a class, and how many of these are predicted so."""
        labels = [label for label, _ in self._labels]
        own, why = known_classes(labels, classes)
        pairs = [(one, *key, count) for one, (key, count) in zip(own, self._labels.items(), strict=True)]
        return _Judged(
            labelled=sum(count for one, _, _, count in pairs if one is not None),
            right=sum(count for one, _, said, count in pairs if one == said),
            unread=sum(count for one, label, _, count in pairs if one is None and label) if classes else 0,
            why=why if classes else "",
        )

    def heaviest(self) -> Iterator[WordSum]:
        """The words of each target with the highest sums of scores, the most frequent target first."""
        for target in _ordered(self.targets):
            sums_of_target = ((text, *sums) for (of, text), sums in self._words.items() if of == target)
            positive = [WordSum(text, target, count, total) for text, count, total in sums_of_target if total > 0]
            yield from nlargest(WORDS, positive, key=lambda word: (word.total, word.text))
