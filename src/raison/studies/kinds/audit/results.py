"""The results of an audit: for each method four questions, each with its evidence, a light, and a recommendation.

    audit.json      the request: model, data, methods, what was left out and why, the estimated cost
    spent.jsonl     the seconds of each job
    faithfulness/   a run: all methods on all texts
    changes/        a run: the same methods on texts that were changed harmlessly
    trust/          randomised blocks and attacks, as the run of a study of trust

Lights are rules on intervals, written down here and shown with every verdict; they only summarise the numbers shown
next to them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from raison.core.errors import DataError, UnknownNameError
from raison.core.results.scores import Comparison, Scores, Summary
from raison.core.settings.reading import plain_values
from raison.core.settings.tables import read_written
from raison.jobs.folder import AUDIT, read_marker
from raison.jobs.store import RecordStore
from raison.numerics.statistics.bounded import Bounds
from raison.numerics.statistics.paired import against
from raison.report.style import phrases
from raison.report.tables.records import Light
from raison.runs.agreement import PairAgreement, agreement_of
from raison.runs.judging import FEWEST, Border, finding_of
from raison.runs.record_validation import check_schema
from raison.runs.run import SCHEMA, read_run
from raison.runs.statistics import cost, subtract
from raison.runs.table import comparison
from raison.studies.folder import Claim, WrittenStudy, study_text
from raison.studies.kinds.audit.head import AuditHead
from raison.studies.kinds.audit.recommendation import (
    COMPREHENSIVE,
    RANDOM,
    SUFFICIENT,
    count_of,
    faithfulness,
    recommended,
    unfit_for_auto,
)
from raison.trust.records import Order
from raison.trust.results import ATTACKED_BY, TrustRun
from raison.trust.results import read_run as read_trust_run
from raison.trust.tables import areas, at_blocks, effects, summary

FOLDERS = (AUDIT,)
HEADER = AUDIT.marker
SPENT, HARMLESS = "spent.jsonl", "harmless_change"
FAITHFULNESS, CHANGES, TRUST = "faithfulness", "changes", "trust"
_HOW = {
    "embedding": "by shifted word embeddings",
    "noise": "by the best of random shifts of that size",
    "substitution": "by replacing words with similar ones",
}
_BORDER = {
    False: "two classes are equally probable",
    True: "the text does not change the score, or two documents have the same score",
}
CORRELATION, SHARE = Bounds(-1.0, 1.0), Bounds(0.0, 1.0)
"""The ranges of the values that decide lights."""
ORDER: Order = "cascading"
_SINGLE = "No text has more than one unit, so there is no order to compare."
ANSWERED = "log-probability of the answer"
"""The name of the number of a language model that writes."""

AuditQuestion = Literal["faithful", "parameters", "changes", "attacks"]

HALF = 0.5
"""The threshold for the area under a randomisation curve, and for the share of top ranks that an attack changes."""
STEADY = 0.8
"""Minimum rank correlation of explanations that count as the same after a harmless change."""
HARD = 0.25
"""Share of top ranks below which an attack counts as failed."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """The answer to one question about one method.

    `value` decides the light; None, with a grey light, if the question does not apply: `says` gives the reason. `shown`
    is whether anything speaks for the method, be it a mean of texts that are too few to tell: without it, it is not
    recommended. `undecided` is whether an amber light's interval lies on the green side, but the second test does not
    confirm it.
    """

    question: AuditQuestion
    light: Light
    value: Summary | None
    says: str
    shown: bool = True
    undecided: bool = False


@dataclass(frozen=True, slots=True)
class MethodAudit:
    """All evidence about one method. `passes` counts forward passes per text, a backward pass being two."""

    method: str
    light: Light
    evidence: tuple[AuditFinding, ...]
    score: Summary
    passes: float
    seconds: float

    def __getitem__(self, question: AuditQuestion) -> AuditFinding:
        """The evidence on one question. Raises UnknownNameError."""
        known = {one.question: one for one in self.evidence}
        if question not in known:
            raise UnknownNameError("question of an audit", question, known)
        return known[question]


@dataclass(frozen=True, slots=True, repr=False)
class Audit(WrittenStudy):
    """Verdicts on all methods, the most trustworthy first; `recommended` is None if none can be trusted."""

    header: AuditHead
    table: Comparison
    methods: tuple[MethodAudit, ...]
    recommended: str | None
    reason: str
    trust: TrustRun
    changes: Comparison | None
    agreement: tuple[PairAgreement, ...] = ()
    spent: float = 0.0
    """Seconds over all processes."""
    dropped: int = 0

    def __repr__(self) -> str:
        advice = "no method recommended" if self.recommended is None else f"{self.recommended} recommended"
        return f"<Audit of {self.header.model} on {self.header.texts} texts: {advice}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: the advice, and every verdict with its evidence."""
        methods = [asdict(one) for one in self.methods]
        alike = [{name: value for name, value in asdict(pair).items() if name != "cosines"} for pair in self.agreement]
        values = {"recommended": self.recommended, "reason": self.reason, "unfit_for_auto": self.unfit_for_auto}
        return plain_values(values | {"methods": methods, "agreement": alike})

    @property
    def left_out(self) -> list[tuple[str, str]]:
        """The methods, or parts of their tests, that were left out, and why."""
        head, listed, header = self.header, list(self.header.unable.items()), self.trust.header
        left = (("answer", head.others, "not the model's own"), ("text", head.repeats, "a repeat of others"))
        for what, count, why in (*left, ("text", head.empty, "no entity is found there")):
            listed += [(f"{count} more {what}{'s' * (count != 1)}", why)] if count else []
        if header.randomisation is not None:
            listed += [(f"{method}, randomised", why) for method, why in header.randomisation.left_out.items()]
        if header.attacks is not None:
            for kind, reasons in header.attacks.left_out.items():
                listed += [(f"{method}, attacked by {ATTACKED_BY[kind]}", why) for method, why in reasons.items()]
            if boundary := len(header.attacks.boundary):
                listed.append((f"{boundary} of the attacked texts", _BORDER[bool(self.header.number)]))
        return listed

    @property
    def unfit_for_auto(self) -> str:
        """Why method="auto" does not follow the recommendation; empty if it does, or does not explain such models."""
        if self.recommended is None or self.header.number == ANSWERED:
            return ""
        return unfit_for_auto(self.recommended, self.table)

    @property
    def title(self) -> str:
        """The audit's title."""
        if self.text:
            return str(self.file["title"])
        return f"Audit of {self.header.model} on {self.header.data}"

    @property
    def digest(self) -> str:
        """The hash of its file, if there was one."""
        return self.header.digest if self.text else ""

    @property
    def progress(self) -> tuple[int, int]:
        """The number of texts that all methods have explained plus the records of trust, and the final number."""
        wanted = self.trust.wanted
        return self.table.texts + wanted - self.trust.missing, self.header.texts + wanted

    def __getitem__(self, method: str) -> MethodAudit:
        """The verdict on a method by its label. Raises UnknownNameError."""
        known = {one.method: one for one in self.methods}
        if method not in known:
            raise UnknownNameError("audited method", method, known)
        return known[method]


def read(folder: Path) -> Audit:
    """Evaluate a folder's contents. Raises DataError if no text was finished by every method."""
    header = read_marker(folder, AUDIT)
    if header is None:
        raise DataError(f"{folder} contains no audit: it has no {HEADER}.")
    check_schema(header, folder / HEADER, SCHEMA)
    head, text = read_written(AuditHead, header, "the head of an audit", folder / HEADER), study_text(folder)
    run = read_run(folder / FAITHFULNESS)
    table = comparison(run)
    changed = read_run(folder / CHANGES) if (folder / CHANGES).is_dir() else None
    changes = None if changed is None else comparison(changed)
    trust = read_trust_run(folder, head.trust)
    single = {text: record.units < 2 for (_row, _seed, text), record in run.records.items()}
    judged = [
        _judged(
            row,
            (
                _faithful(row, table[RANDOM]),
                _parameters(trust, row.method, single),
                _changes(changes, row.method, single),
                _attacks(trust, row.method, head.number, single),
            ),
        )
        for row in table.rows
        if row.method != RANDOM
    ]
    chosen, reason = _advice(judged, table)
    order = {"green": 0, "amber": 1, "red": 2, "grey": 3}
    judged.sort(key=lambda one: (one.method != chosen, order[one.light], -one.score.mean))
    times = RecordStore(folder / SPENT).read()
    spent = sum(line["seconds"] for line in times.records) + sum(head.spent.values())
    dropped = run.dropped + trust.dropped + times.dropped + (0 if changed is None else changed.dropped)
    alike = agreement_of(run)
    return Audit(folder, head, text, table, tuple(judged), chosen, reason, trust, changes, alike, spent, dropped)


def places(_results: Audit, _claim: Claim) -> list[str]:
    """An audit makes no claims."""
    return []


def sample(_results: Audit, _claim: Claim, _place: str) -> None:
    """An audit makes no claims."""


def _judged(row: Scores, evidence: tuple[AuditFinding, ...]) -> MethodAudit:
    lights = {one.question: one.light for one in evidence}
    score = summary(faithfulness(row))
    needed, further = {lights["faithful"], lights["parameters"]}, {lights["changes"], lights["attacks"]}
    light: Light = "red" if "red" in needed else "green" if needed == {"green"} and "red" not in further else "amber"
    return MethodAudit(row.method, light, evidence, score, cost(row), row.seconds.mean)


def _faithful(row: Scores, random: Scores) -> AuditFinding:
    """Better than random scores on both sides: removing the top units, and keeping them alone."""
    more, less = ((count_of(row, count), count_of(random, count)) for count in (COMPREHENSIVE, SUFFICIENT))
    gaps = [subtract(*more), subtract(less[1], less[0])]
    findings = [finding_of(gap, "above") for gap in gaps]
    better = findings.count("holds")
    light: Light = "red" if "fails" in findings else "green" if better == 2 else "amber"
    light = "grey" if "too few" in findings else light
    counts = {2: "on both counts", 1: "on one count of two", 0: "on neither count"}[better]
    # A score in its own units may have any size.
    digits = phrases.places(*(10 * gap.mean for gap in gaps))
    means = "; ".join(
        f"{name} {scores.summary.mean:.{digits}f}, random {ground.summary.mean:.{digits}f}, better by "
        f"{phrases.with_interval(gap, f'+.{digits}f')}"
        for name, gap, scores, ground in (
            ("comprehensiveness", gaps[0], *more),
            ("sufficiency", gaps[1], *less),
        )
    )
    verdict = "Compared with random scores" if light == "grey" else f"Better than random scores {counts}"
    says = f"{verdict}: {means}.{_few(light)}"
    shown = any(gap.mean > 0 for gap in gaps) if light == "grey" else better > 0
    return AuditFinding("faithful", light, summary(_gains(row, random)), says, shown)


def _parameters(trust: TrustRun, method: str, single: Mapping[int, bool]) -> AuditFinding:
    if method not in trust.randomised:
        return AuditFinding("parameters", "grey", None, f"Not randomised: {_why(trust, 'randomisation', method)}.")
    curves = list(areas(trust, method, ORDER, "spearman").values())
    value = summary(curves)
    if not value.count:
        unfinished = "yet" if trust.missing else "that is defined"
        why = _SINGLE if all(single.values()) else f"No text has a complete curve {unfinished}."
        return AuditFinding("parameters", "grey", None, why)
    light, undecided = light_of(curves, Border("below", HALF), Border("above", HALF), CORRELATION)
    end = summary(at_blocks(trust, method, ORDER, trust.blocks, "spearman").values())
    says = (
        f"With all {trust.blocks} blocks randomised the scores still correlate by {phrases.with_interval(end, '.2f')} "
        f"with the model's own; area under the curve {phrases.with_interval(value, '.2f')} (low: depends on the "
        f"parameters; 1: does not depend on them at all), over {phrases.count(value.count, 'text')}."
        f"{_few(light, undecided)}"
    )
    return AuditFinding("parameters", light, value, says, undecided=undecided)


def _changes(changes: Comparison | None, method: str, single: Mapping[int, bool]) -> AuditFinding:
    rows = [] if changes is None else [row for row in changes.rows if row.method == method]
    value = rows[0][HARMLESS].summary if rows else None
    if value is None or not value.count:
        why = _SINGLE if all(single.values()) else "No harmless change could be measured."
        return AuditFinding("changes", "grey", None, why)
    light, undecided = light_of(rows[0][HARMLESS].values, Border("above", STEADY), Border("below", HALF), CORRELATION)
    says = (
        f"Rank correlation {phrases.with_interval(value, '.2f')} between a text and the same text with changes that "
        f"keep the prediction, over {phrases.count(value.count, 'text')}.{_few(light, undecided)}"
    )
    return AuditFinding("changes", light, value, says, undecided=undecided)


def _attacks(trust: TrustRun, method: str, number: str, single: Mapping[int, bool]) -> AuditFinding:
    """The strongest change decides: an attack, or the best of random shifts, which is also an attack.

    A text with a single unit has no ranks to lose, and is no evidence.
    """
    by_variant = {
        variant: {
            text: value
            for text, value in effects(trust, method, variant, "rank_change").items()
            if not single.get(text, False)
        }
        for variant, methods in trust.variants.items()
        if method in methods
    }
    values = {variant: summary(changes.values()) for variant, changes in by_variant.items()}
    known = [variant for variant, value in values.items() if value.count]
    if not known:
        why = _SINGLE if all(single.values()) else f"Not attacked: {_why(trust, 'attacks', method)}."
        return AuditFinding("attacks", "grey", None, why)
    unfinished = sum(key.method == method and key not in trust.attacks for key in trust.wanted_attacks())
    if unfinished:
        # The strongest attack decides, and it may be among those that are missing.
        says = f"Not finished: {phrases.count(unfinished, 'attack')} on this method are still missing."
        return AuditFinding("attacks", "grey", None, says)
    worst = max(known, key=lambda variant: values[variant].mean)
    value = values[worst]
    light, undecided = light_of(list(by_variant[worst].values()), Border("below", HARD), Border("above", HALF), SHARE)
    losses = [f"{_HOW[variant.attack]} {phrases.with_interval(values[variant], '.0%')}" for variant in known]
    moved = summary(effects(trust, method, worst, "absolute_probability_change").values())
    what, digits = f"score ({number})" if number else "probability", phrases.places(10 * moved.mean)
    says = (
        f"Share of the top ranks lost while the prediction holds, over {phrases.count(value.count, 'text')}: "
        f"{', '.join(losses)}. The strongest of these changes the {what} by {moved.mean:.{digits}f}."
        f"{_few(light, undecided)}"
    )
    return AuditFinding("attacks", light, value, says, undecided=undecided)


def light_of(values: Sequence[float], green: Border, red: Border, bounds: Bounds) -> tuple[Light, bool]:
    """By the rule of claims: whether the mean lies beyond a border; grey if there are too few values.

    Also whether an amber light's interval lies on the green side, but the second test does not confirm it.
    """
    parts = np.array(values, dtype=np.float64).reshape(-1, 1)
    gaps = [against(parts, border.at, bounds=bounds) for border in (green, red)]
    good, bad = (finding_of(gap, border.side) for gap, border in zip(gaps, (green, red), strict=True))
    if good in ("holds", "too few"):
        return ("green" if good == "holds" else "grey"), False
    if bad == "holds":
        return "red", False
    return "amber", gaps[0].low > 0 if green.side == "above" else gaps[0].high < 0


def _few(light: Light, undecided: bool = False) -> str:
    """The note after evidence with too few values."""
    if undecided:
        return " The interval is on the green side, but so few texts may have missed a rare failure: undecided."
    return f" Too few texts to judge: at least {FEWEST} are needed." if light == "grey" else ""


def _why(trust: TrustRun, part: str, method: str) -> str:
    """Why a method was left out of a part."""
    randomised, attacked = trust.header.randomisation, trust.header.attacks
    if part == "randomisation":
        reasons = [randomised.left_out] if randomised else []
    else:
        reasons = [*attacked.left_out.values()] if attacked else []
    known = [of_kind[method] for of_kind in reasons if method in of_kind]
    return "; ".join(known) or "not measured yet"


def _advice(judged: Sequence[MethodAudit], table: Comparison) -> tuple[str | None, str]:
    """The recommendation among the methods with the best light, and the reason."""
    for light in ("green", "amber"):
        fitting = [one for one in judged if one.light == light and all(finding.shown for finding in one.evidence)]
        passing = {one.method: one.passes for one in fitting}
        if passing:
            chosen, reason = recommended(passing, table)
            if light == "amber":
                reason = f"{reason.replace('that pass', 'to be used with care')} None passes: read the remarks."
            return chosen, reason
    tried = phrases.count(table.texts, "text")
    return None, (
        f"No method passes: {tried} did not show of any that it is both more faithful than random scores and dependent "
        "on the model."
    )


def _gains(row: Scores, random: Scores) -> list[float]:
    return [score - other for score, other in zip(faithfulness(row), faithfulness(random), strict=True)]
