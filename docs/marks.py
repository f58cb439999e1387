"""The marks in pages: what each says is found in the table of claims. docs/findings.py lists them."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType

from forest import Effect, forest

PAGES = "studies"
"""The folder of the studies' pages."""
JUDGED = ("holds", "fails", "undecided")
MARK = re.compile(r"<!-- (\w+)((?: [^>]*)?) -->(.*?)<!-- / -->", re.DOTALL)
QUESTION = re.compile(r"^### (\d+)\.", re.MULTILINE)
LONGEST = 110
"""Letters of a label in the figure."""
ENOUGH = (100, 1000, 10_000)
"""Numbers of texts that might decide a claim."""
Row = Mapping[str, str]
NO_OTHERS: Mapping[str, Callable[[list[str]], str]] = MappingProxyType({})


class StaleError(Exception):
    """A mark in a page that the table does not answer."""


def filled(text: str, rows: Sequence[Row], others: Mapping[str, Callable[[list[str]], str]] = NO_OTHERS) -> str:
    """The page with every number as the table has it, or `others`, which answer kinds of marks by their patterns.

    Raises StaleError for a mark that fits no claim.
    """

    def number_of(mark: re.Match[str]) -> str:
        kind, about = mark[1], mark[2]
        if kind in others:
            return f"<!-- {kind}{about} -->{others[kind](_asked(about))}<!-- / -->"
        if kind not in ANSWERS:
            raise StaleError(f"'{kind}' in {mark[0]!r:.120} is none of {', '.join(ANSWERS)}")
        fitting = _fitting(rows, about)
        if not fitting:
            raise StaleError(f"no claim fits {mark[0]!r:.160}")
        return f"<!-- {kind}{about} -->{ANSWERS[kind](fitting)}<!-- / -->"

    return MARK.sub(number_of, text)


def figure(text: str, rows: Sequence[Row]) -> str:
    """The page's single differences, each under the number of its question."""
    effects = []
    for mark in MARK.finditer(text):
        if mark[1] == "gap":
            row = _single(_fitting(rows, mark[2]))
            question = QUESTION.findall(text[: mark.start()])[-1]
            effect = Effect(
                _labelled(f"{question}. {row['claim']}", row["run"]),
                row["verdict"],
                *(float(row[column]) for column in ("difference", "low", "high")),
            )
            effects.append(effect.turned() if row["side"] == "below" else effect)
    return forest(effects)


def _labelled(claim: str, run: str) -> str:
    """A claim, shortened if necessary, with the names of its run's model and data: those tell claims apart."""
    where = f" ({', '.join(dict.fromkeys(run.split('--')))})"
    room = LONGEST - len(where)
    return (claim if len(claim) <= room else f"{claim[: room - 1]}…") + where


def _asked(about: str) -> list[str]:
    return [part.strip() or "*" for part in about.split(";")]


def _fitting(rows: Sequence[Row], about: str) -> Sequence[Row]:
    """The rows whose columns have what a mark asks of each; the study, which few rows pass, is looked at first."""
    for column, pattern in zip(("study", "claim", "run", "metric"), _asked(about), strict=False):
        rows = [row for row in rows if fnmatchcase(row[column], pattern)]
    return rows


def _share(verdict: str) -> Callable[[Sequence[Row]], str]:
    def said(rows: Sequence[Row]) -> str:
        judged = [row["verdict"] for row in rows if row["verdict"] in JUDGED]
        return f"{judged.count(verdict)} of {len(judged)}"

    return said


def _left(rows: Sequence[Row]) -> str:
    return str(sum(row["verdict"] not in JUDGED for row in rows))


def _gap(rows: Sequence[Row]) -> str:
    """One difference with its interval; ° for one that is decided, but not after Holm's correction."""
    row = _single(rows)
    return f"{interval(row)}{'°' if row['holm'] == 'no' else ''}"


def interval(row: Row) -> str:
    """The difference with its interval."""
    return f"{_short(row['difference'])} [{_short(row['low'])}, {_short(row['high'])}]"


def power(row: Row, caveat: str = "") -> str:
    """The number of texts, what they could have shown, and how many would show what was found: in small print."""
    known = f"; finds {_short(row['detectable'])}; {_needed(row)}" if row["detectable"] else ""
    return f"<br><sub>n = {row['n']}{known}{caveat}</sub>"


def _needed(row: Row) -> str:
    if not row["needed"]:
        return row["note"]
    return f"{float(row['needed']):,.0f} would" if row["needed"] != "inf" else "over 1,000,000 would"


def _open(rows: Sequence[Row]) -> str:
    """How many of the undecided claims certain numbers of texts would decide."""
    needed = _sizes(rows)
    shares = [
        f"{sum(count <= most for count in needed)} would take at most {most:,} texts" for most in (100, 1000, 10**4)
    ]
    return f"Of {len(needed)} undecided claims {', '.join(shares)}"


def _sizes(rows: Sequence[Row]) -> list[float]:
    """The numbers of values that would decide the undecided claims, without those whose differences are all equal."""
    return sorted(
        float(row["needed"]) for row in rows if row["verdict"] == "undecided" and row["needed"] and row["detectable"]
    )


def _apart(rows: Sequence[Row]) -> str:
    """How many claims are decided by their interval although their largest p-value is not below 0.05."""
    decided = [row for row in rows if row["verdict"] in ("holds", "fails")]
    return f"{sum(float(row['p']) >= 0.05 for row in decided):,} of {len(decided):,}"


def _single(rows: Sequence[Row]) -> Row:
    if len(rows) != 1:
        raise StaleError(f"{len(rows)} claims where one is asked for, such as '{rows[0]['claim']}' on {rows[0]['run']}")
    return rows[0]


def _one(column: str) -> Callable[[Sequence[Row]], str]:
    return lambda rows: _short(_single(rows)[column])


def _range(column: str) -> Callable[[Sequence[Row]], str]:
    def said(rows: Sequence[Row]) -> str:
        values = sorted((float(row[column]), row[column]) for row in rows if row["verdict"] in JUDGED)
        if not values:
            raise StaleError(f"no claim is judged, such as '{rows[0]['claim']}'")
        ends = dict.fromkeys(_short(text) for _, text in (values[0], values[-1]))
        return " to ".join(ends)

    return said


def _short(value: str) -> str:
    """Three digits behind the point: two from one on, and four where three would be zero."""
    known = float(value)
    return f"{known:.{2 if abs(known) >= 1 else 3 if abs(known) >= 0.0005 or not known else 4}f}"


def _tally(rows: Sequence[Row]) -> str:
    kinds = ("holds", "fails", "undecided", "not judged", "too few", "missing")
    counts = Counter(row["verdict"] for row in rows)
    judged = sum(counts[kind] for kind in JUDGED)
    holm = Counter(row["verdict"] for row in rows if row["holm"] == "yes")
    return (
        f"{len(rows)} claims in {len({row['study'] for row in rows})} studies, of which {judged} are judged: "
        f"{counts['holds']} hold ({holm['holds']} also after Holm's correction within their study), "
        f"{counts['fails']} fail ({holm['fails']}), {counts['undecided']} are undecided. "
        + ", ".join(f"{counts[kind]} are {kind}" for kind in kinds[3:])
        + "."
    )


def _caveats(rows: Sequence[Row]) -> str:
    """How many claims prove less than others."""
    counts = Counter(row["caveat"] for row in rows if row["verdict"] in JUDGED)
    seen, sure = counts["exploratory"], counts["by construction"]
    return f"{seen} were stated after their records had been seen, and {sure} cannot fail"


def _pages(rows: Sequence[Row]) -> str:
    studies: dict[str, list[Row]] = {}
    for row in rows:
        studies.setdefault(row["study"], []).append(row)
    header = [
        "study",
        "n",
        "holds",
        "fails",
        "undecided",
        "n that decides half of these",
        "not judged, too few, missing",
    ]
    return "\n\n" + markdown(header, [_page_line(name, of_study) for name, of_study in studies.items()]) + "\n"


def _page_line(name: str, rows: Sequence[Row]) -> list[str]:
    counts = Counter(row["verdict"] if row["verdict"] in JUDGED else "left out" for row in rows)
    sizes = sorted({int(row["n"]) for row in rows if row["n"]})
    known = [str(counts[verdict]) for verdict in JUDGED]
    ends = " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1])))
    return [f"[{name}]({PAGES}/{name}.md)", ends, *known, _half(rows), str(counts["left out"])]


def _half(rows: Sequence[Row]) -> str:
    """How many values would decide half of the undecided claims, with a power of 80 %."""
    needed = _sizes(rows)
    if not needed:
        return "no number of texts" if any(row["verdict"] == "undecided" for row in rows) else ""
    half = needed[(len(needed) - 1) // 2]
    return "over 1,000,000" if math.isinf(half) else f"{half:,.0f}"


ANSWERS: Mapping[str, Callable[[Sequence[Row]], str]] = {
    **{verdict: _share(verdict) for verdict in JUDGED},
    "left": _left,
    "gap": _gap,
    "first": _one("first_value"),
    "second": _one("second_value"),
    "gaps": _range("difference"),
    "accuracies": _range("accuracy"),
    "firsts": _range("first_value"),
    "seconds": _range("second_value"),
    "apart": _apart,
    "open": _open,
    "tally": _tally,
    "caveats": _caveats,
    "pages": _pages,
}


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table."""
    text = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in (header, *lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (text[0], ["---"] * len(header), *text[1:]))
