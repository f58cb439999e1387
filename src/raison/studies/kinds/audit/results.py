"""The results of an audit: for each method four questions, each with its evidence, a light, and a recommendation.

    audit.json      the request: model, data, methods, what was left out and why, the estimated cost
    spent.jsonl     the seconds of each job
    faithfulness/   a run: all methods on all texts
    changes/        a run: the same methods on texts that were changed harmlessly
    trust/          randomised blocks and attacks, as the run of a study of trust

Lights are rules on intervals (evidence.py); they only summarise the numbers shown next to them.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from raison.core.errors import DataError, UnknownNameError
from raison.core.results.scores import Comparison, Scores, Summary
from raison.core.settings.reading import plain_values
from raison.core.settings.tables import read_written
from raison.jobs.folder import AUDIT, read_marker
from raison.jobs.store import RecordStore
from raison.numerics.statistics.student import FEWEST
from raison.report.style import phrases
from raison.report.tables.records import Light
from raison.runs.agreement import PairAgreement, agreement_of
from raison.runs.record_validation import check_schema
from raison.runs.run import SCHEMA, read_run
from raison.runs.statistics import cost
from raison.runs.table import comparison, finished_texts
from raison.studies.folder import Claim, WrittenStudy, study_text
from raison.studies.kinds.audit import evidence
from raison.studies.kinds.audit.evidence import AuditFinding, AuditQuestion
from raison.studies.kinds.audit.head import AuditHead
from raison.studies.kinds.audit.recommendation import (
    RANDOM,
    faithfulness,
    recommended,
    unfit_for_auto,
)
from raison.trust.results import ATTACKED_BY, TrustRun
from raison.trust.results import read_run as read_trust_run
from raison.trust.tables import summary

FOLDERS = (AUDIT,)
HEADER = AUDIT.marker
SPENT = "spent.jsonl"
FAITHFULNESS, CHANGES, TRUST = "faithfulness", "changes", "trust"
ANSWERED = "log-probability of the answer"
"""The name of the number of a language model that writes."""


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
    changed: tuple[int, int] = (0, 0)
    """How many texts' harmless changes all methods have been measured on, and how many there are."""
    single: frozenset[int] = frozenset()
    """The texts of a single unit, which have no order."""
    spent: float = 0.0
    """Seconds over all processes."""
    dropped: int = 0

    def __repr__(self) -> str:
        advice = "no method recommended" if self.recommended is None else f"{self.recommended} recommended"
        return f"<Audit of {self.header.model} on {self.header.texts} texts: {advice}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: what was audited and how far, the advice, and every verdict with its evidence."""
        methods = [asdict(one) for one in self.methods]
        alike = [{name: value for name, value in asdict(pair).items() if name != "cosines"} for pair in self.agreement]
        about = {"model": self.header.model, "data": self.header.data, "texts": self.table.texts}
        advice = {"recommended": self.recommended, "reason": self.reason, "unfit_for_auto": self.unfit_for_auto}
        found = {"methods": methods, "agreement": alike, "left_out": self.left_out}
        return plain_values(WrittenStudy.to_dict(self) | about | advice | found)

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
            if (boundary := len(header.attacks.boundary)) and any(self.trust.variants.values()):
                listed.append((f"{boundary} of the attacked texts", evidence.BORDER[bool(self.header.number)]))
        return listed

    @property
    def ordered(self) -> TrustRun:
        """The records of randomised blocks, and of attacks that kept the prediction of a text of several units, which
        alone are evidence."""
        attacks = self.trust.attacks.items()
        kept = {key: record for key, record in attacks if record.held and key.text not in self.single}
        return replace(self.trust, attacks=kept)

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
        """The number of texts that all methods have explained, as they are and changed harmlessly, plus the records of
        trust; and the final number."""
        (changed, changes), wanted = self.changed, self.trust.wanted
        return self.table.texts + changed + wanted - self.trust.missing, self.header.texts + changes + wanted

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
    single = frozenset(text for (_row, _seed, text), record in run.records.items() if record.units < 2)
    rows = [row for row in table.rows if row.method != RANDOM]
    judged = [
        _judged(
            row,
            (
                better,
                evidence.parameters(trust, row.method, single),
                evidence.changes(changes, row.method, single),
                evidence.attacks(trust, row.method, head.number, single),
            ),
        )
        for row, better in zip(rows, evidence.faithful(rows, table[RANDOM]), strict=True)
    ]
    chosen, reason = _advice(judged, table)
    order = {"green": 0, "amber": 1, "red": 2, "grey": 3}
    judged.sort(key=lambda one: (one.method != chosen, order[one.light], -one.score.mean))
    times = RecordStore(folder / SPENT).read()
    spent = sum(line["seconds"] for line in times.records) + sum(head.spent.values())
    dropped = run.dropped + trust.dropped + times.dropped + (0 if changed is None else changed.dropped)
    measured = (0, 0) if changed is None else (len(finished_texts(changed)), changed.header.texts)
    return Audit(
        folder, head, text, table, tuple(judged), chosen, reason, trust, changes, agreement_of(run), measured, single,
        spent, dropped,
    )  # fmt: skip


def places(_results: Audit, _claim: Claim) -> list[str]:
    """An audit makes no claims."""
    return []


def sample(_results: Audit, _claim: Claim, _place: str) -> None:
    """An audit makes no claims."""


def _judged(row: Scores, found: tuple[AuditFinding, ...]) -> MethodAudit:
    lights = {one.question: one.light for one in found}
    score = summary(faithfulness(row))
    needed, further = {lights["faithful"], lights["parameters"]}, {lights["changes"], lights["attacks"]}
    light: Light = "red" if "red" in needed else "green" if needed == {"green"} and "red" not in further else "amber"
    return MethodAudit(row.method, light, found, score, cost(row), row.seconds.mean)


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
    if table.texts < FEWEST:
        return None, f"{tried} can show nothing of any method: audit at least {FEWEST}, better 50."
    return None, (
        f"No method passes: {tried} did not show of any that it is both more faithful than random scores and dependent "
        "on the model."
    )
