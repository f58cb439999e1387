"""MR, the movie review sentences with a polarity (Rotten Tomatoes)."""

from collections.abc import Iterator
from itertools import islice, zip_longest
from pathlib import Path

from raison.data.lines import LineRecord, whole_lines
from raison.data.named import NamedSet, Reader, Split
from raison.data.readers import TEXT_AND_LABEL, labelled
from raison.data.rows import Entry

_FILES = ("rt-polarity.neg", "rt-polarity.pos")
_HUB = "cornell-movie-review-data/rotten_tomatoes"


def _lines(first: int, last: int) -> Reader:
    """Reads lines `first` to `last` of both files in turn, so that the first rows hold both classes."""

    def read(paths: tuple[Path, ...]) -> Iterator[Entry]:
        files = [islice(whole_lines(path, "latin-1"), first - 1, last) for path in paths]
        return labelled(_in_turn(zip_longest(*files)), TEXT_AND_LABEL, ("0", "1"))

    return read


def _in_turn(pairs: Iterator[tuple[LineRecord | None, ...]]) -> Iterator[LineRecord]:
    for pair in pairs:
        line = next(record.number for record in pair if record is not None)
        for label, record in enumerate(pair):
            # A number of its own for every row: odd ones negative, even ones positive.
            number = 2 * line - 1 + label
            if record is None:
                yield LineRecord(number, [], f"{_FILES[label]} has no line {line}, its partner has")
            else:
                yield LineRecord(number, [*record.cells, str(label)], record.broken)


SET = NamedSet(
    folder="mr",
    labels=("negative", "positive"),
    # There is no official split; these sizes (80, 10 and 10 % of each file, by line) are those of the Hub's.
    splits={
        "train": Split(_FILES, _lines(1, 4265), (_HUB, "train")),
        "dev": Split(_FILES, _lines(4266, 4798), (_HUB, "validation")),
        "test": Split(_FILES, _lines(4799, 5331), (_HUB, "test")),
    },
    citation="Pang and Lee, ACL 2005: Seeing stars: exploiting class relationships for sentiment categorization",
    note="The files are Latin-1. Line n is row 2n - 1 where it is negative and row 2n where it is positive.",
    never_with=("sst2",),
)
