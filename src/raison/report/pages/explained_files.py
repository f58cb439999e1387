"""The report on explanations of whole files: predictions, words with the largest effect, failed and slow rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path

from raison.numerics.statistics.successes import share_interval
from raison.report.style import phrases
from raison.report.tables.records import Cell, Document, Facts, HeadedExplanation, Reasons, Section, Table, Text
from raison.runs.files import summary
from raison.runs.files.flat_records import Explains, explanation_of
from raison.runs.files.folder import Rejected, WrittenShards
from raison.runs.files.summary import FileSummary

EXAMPLES = 6
"""Number of rows whose explanations the page shows."""
SEARCHED = 1024
"""Number of rows that are searched for them, so that different predictions are shown."""
REJECTED = 10
"""Number of rejected rows that the page names."""


def sections(written: WrittenShards, target: Path | None = None) -> Document:
    """The report on a folder's contents so far; it has no further pages."""
    counts = summary.of(written)
    left_out = list(islice(written.rejected, REJECTED))
    return Document(
        title=f"Explanations of {', '.join(Path(one).name for one in written.manifest.sources)}",
        sections=(
            Section("", (Text(_said(written, counts)),), "said"),
            *_counted(written, counts),
            Section(_names(written).words, (_words(written, counts),), "words"),
            Section(
                "Rows without an explanation",
                (Reasons(tuple((_row(one.id, one.row), one.reason) for one in left_out)),),
                "rejected",
            ),
            Section("Rows that took longest", (_slowest(counts),), "slowest"),
            Section("Some rows", tuple(_examples(written)), "rows", in_terminal=False),
            Section("About these explanations", (Facts(_facts(written, counts)),), "about"),
        ),
        warnings=tuple(_warnings(counts, left_out)),
    )


@dataclass(frozen=True, slots=True)
class _TableNames:
    """Names for tables: the counts ("" without), the counted items, the units."""

    counts: str
    counted: str
    words: str
    unit: str


_NAMES: dict[Explains, _TableNames] = {
    "predictions": _TableNames("Predictions", "prediction", "Words with the largest effect", "word"),
    "outputs": _TableNames("", "", "Words with the largest effect", "word"),
    "citations": _TableNames("What statements depend on", "origin", "Sources with the largest effect", "source"),
}


def _names(written: WrittenShards) -> _TableNames:
    return _NAMES[written.manifest.explains]


def _counted(written: WrittenShards, counts: FileSummary) -> Iterator[Section]:
    if _names(written).counts:
        yield Section(_names(written).counts, (_predictions(written, counts),), "predictions")


def _said(written: WrittenShards, counts: FileSummary) -> str:
    manifest = written.manifest
    done = "" if written.is_complete else f" So far {written.done:,} of {manifest.rows:,} rows were read."
    return (
        f"{phrases.count(counts.explanations, 'explanation')} of {phrases.count(counts.rows - counts.rejected, 'row')} "
        f"by {manifest.method}, on {manifest.model}; {phrases.count(counts.rejected, 'row')} could not be "
        f"explained.{done}{_right(counts)}"
    )


def _right(counts: FileSummary) -> str:
    """How many of the texts with a label are predicted so, and which labels are not judged; empty without labels."""
    verb = "is" if counts.unread == 1 else "are"
    why = f" {phrases.count(counts.unread, 'label')} {verb} not judged: {counts.why_unread}."
    unread = why if counts.unread else ""
    if not counts.labelled:
        return unread
    low, high = share_interval(counts.right, counts.labelled)
    return (
        f" {counts.right:,} of {phrases.count(counts.labelled, 'labelled text')} are predicted as labelled: "
        f"{100 * counts.right / counts.labelled:.1f} % [{100 * low:.1f} %, {100 * high:.1f} %].{unread}"
    )


def _predictions(written: WrittenShards, counts: FileSummary) -> Table:
    names = _names(written)
    total = max(1, sum(counts.predictions.values()))
    rows = [
        (name, (Cell(f"{count:,}"), Cell(f"{100 * count / total:.1f} %"))) for name, count in counts.predictions.items()
    ]
    return Table(names.counts, (names.counted, "number", "share"), tuple(rows))


def _words(written: WrittenShards, counts: FileSummary) -> Table:
    names = _names(written)
    rows = tuple(
        (
            phrases.shorten(word.text, 60),
            (Cell(word.target), Cell(f"{word.count:,}"), *_scores(word.total, word.total / word.count)),
        )
        for word in counts.words
    )
    exact = "" if counts.is_exact else " There were too many to count them all: sums are lower bounds."
    return Table(
        names.words,
        (names.unit, "for", "times", "sum of scores", "mean score"),
        rows,
        caption=f"The {names.unit}s with the highest sums of scores over all rows, for each target.{exact}",
    )


def _scores(total: float, mean: float) -> tuple[Cell, Cell]:
    return Cell(phrases.signed(total, 3)), Cell(phrases.signed(mean, 3))


def _warnings(counts: FileSummary, left_out: Sequence[Rejected]) -> Iterator[str]:
    if left_out:
        first = left_out[0]
        yield (
            f"{phrases.count(counts.rejected, 'row')} could not be explained (rejected.jsonl); the first, "
            f"{_row(first.id, first.row)}: {first.reason}"
        )


def _row(name: str, number: int) -> str:
    return f"{name} (row {number})"


def _slowest(counts: FileSummary) -> Table:
    rows = tuple(
        (_row(one.id, one.row), (Cell(f"{one.units:,}"), Cell(f"{one.passes:,}"), Cell(f"{one.seconds:.3f}")))
        for one in counts.slowest
    )
    return Table(
        "Rows that took longest",
        ("row", "units", "passes", "seconds"),
        rows,
        caption="The time of a batch is divided among its rows by their passes and units.",
    )


def _examples(written: WrittenShards) -> Iterator[HeadedExplanation]:
    """One row of each prediction first, then further ones, in their order."""
    head = list(islice(written.rows(), SEARCHED))
    first = {record["prediction"]: place for place, record in reversed(list(enumerate(head)))}
    places = [*sorted(first.values()), *(place for place in range(len(head)) if place not in set(first.values()))]
    for place in sorted(places[:EXAMPLES]):
        record = head[place]
        yield HeadedExplanation(
            explanation_of(record), _row(record["id"], record["row"]), f"row-{record['row']}-{record['number']}"
        )


def _facts(written: WrittenShards, counts: FileSummary) -> dict[str, object]:
    manifest, raw = written.manifest, written.manifest.raw
    # Several explanations of a text share most passes, and each counts all that it needs.
    several = counts.explanations > counts.rows - counts.rejected
    return {
        "Sources": ", ".join(manifest.sources),
        "Model": manifest.model,
        "Method": manifest.method,
        "Methods that ran": ", ".join(f"{name} ({count:,})" for name, count in counts.methods.items()),
        "Forward passes": f"{'at least ' * several}{counts.evaluations:,}",
        "Backward passes": f"{counts.gradients:,}",
        "Time of the model": str(timedelta(seconds=round(counts.seconds))),
        "Size": f"{counts.bytes / 1e6:,.1f} MB in {len(written.receipts)} files ({manifest.format})",
        "Settings": ", ".join(f"{name}={value}" for name, value in raw["settings"].items() if value is not None),
        "Version": raw["raison"],
    }
