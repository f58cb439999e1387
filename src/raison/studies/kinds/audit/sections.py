"""The report of an audit: advice first, then a table of lights, the evidence as figures, and the rules."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from raison.core.results.explanation import Explanation
from raison.core.results.scores import Summary
from raison.jobs.identity import digest_of
from raison.numerics.statistics.paired import FEW
from raison.report.figures.data import Front
from raison.report.figures.trust import Tried, attack_figures, randomisation_figures, substitution_figures
from raison.report.pages.shown import Shown, shown_texts
from raison.report.style import phrases
from raison.report.tables.agreement_matrices import agreements
from raison.report.tables.records import (
    Advice,
    AnsweredQuestion,
    AnsweredQuestions,
    Cell,
    Document,
    Facts,
    HeadedExplanation,
    Light,
    Part,
    Plots,
    Reasons,
    ScoresTable,
    Section,
    Table,
    Text,
)
from raison.report.tables.results import warnings
from raison.runs.run import read_run
from raison.runs.statistics import pareto
from raison.studies.kinds.audit.evidence import HALF, HARD, ORDER, STEADY, AuditFinding, AuditQuestion
from raison.studies.kinds.audit.head import AuditHead
from raison.studies.kinds.audit.recommendation import COMPREHENSIVE, SUFFICIENT, count_of, passes, share
from raison.studies.kinds.audit.results import FAITHFULNESS, Audit, MethodAudit
from raison.trust.records import AttackKey, SimilarityKey, Substituted
from raison.trust.results import TrustRun, substituted

EXAMPLES = 3
"""Number of texts that a method's page shows."""
PAGE = "index.html"

LIGHTS: dict[Light, str] = {"green": "trust", "amber": "with care", "red": "do not trust", "grey": "not tested"}
"""The lights in words, for readers who cannot see the colours, and for print."""

ANSWERS: dict[AuditQuestion, dict[Light, str]] = {
    "faithful": {"green": "faithful", "amber": "partly", "red": "worse than random", "grey": "not tested"},
    "parameters": {"green": "depends on them", "amber": "undecided", "red": "insensitive", "grey": "not tested"},
    "changes": {"green": "steady", "amber": "moves", "red": "unstable", "grey": "not tested"},
    "attacks": {"green": "withstands", "amber": "bends", "red": "breaks", "grey": "not tested"},
}

QUESTIONS: dict[AuditQuestion, str] = {
    "faithful": "Does it find what the model uses?",
    "parameters": "Does it depend on the model's parameters?",
    "changes": "Does it stay the same under harmless changes?",
    "attacks": "Does it withstand attacks?",
}

SHORT: dict[AuditQuestion, str] = {
    "faithful": "faithful?",
    "parameters": "depends on the model?",
    "changes": "steady?",
    "attacks": "withstands attacks?",
}

_CHANGES = (
    "Letters are capitalised, contractions expanded, words replaced by synonyms, a sentence without content is "
    "appended; only changes that keep {what} count{how}. The number is the rank correlation with the original. "
    f"Green: its interval lies above {STEADY}. Red: below {HALF}. Amber: between."
)
_STILL = (
    ": it may change by at most 5 % of the whole text's effect on it, and two ranked documents must keep their order. "
    "In an answer with sources, one source is changed in these ways, or two sources are swapped"
)
_ATTACKED = " The prediction counts as kept if the score does not change, as under harmless changes."

RULES: dict[AuditQuestion, str] = {
    "faithful": (
        "The units with the highest scores are removed (comprehensiveness), or kept alone (sufficiency). Green: "
        "better than random scores on both, that is, the 95 % interval of the difference lies above 0, also after "
        "Holm's correction over all methods and both sides. Amber: on one, or undecided. Red: worse than random on "
        "either. A method that was not shown to be better on one is not recommended."
    ),
    "parameters": (
        "The model's blocks are filled with random values, from the last one back, and every text is explained again. "
        "An explanation that does not change does not explain this model. The number is the mean along the curve of "
        f"the rank correlation with the original, without its start. Green: its interval lies below {HALF}. Red: from "
        f"{HALF} on. Amber: undecided."
    ),
    "changes": _CHANGES.format(what="the probability", how=""),
    "attacks": (
        "An adversary searches for a small change that keeps the prediction and pushes the top units down: of the "
        "word embeddings if the method is differentiable, and by replacing words with similar ones. The number is the "
        "share of the top ranks that other units hold afterwards. Green: its interval lies below "
        f"{share(HARD)}. Red: from {share(HALF)} on. Amber: between, or undecided. If only words could "
        "be replaced, the test is an easier one."
    ),
}

OF_A_NUMBER: dict[AuditQuestion, str] = RULES | {
    "changes": _CHANGES.format(what="the score", how=_STILL),
    "attacks": RULES["attacks"] + _ATTACKED,
}
"""The same for a model with one number."""

OVERALL = (
    "Overall: red if one of the first two is red: less faithful than random scores, or not dependent on the model. "
    "Amber if one of these is undecided or could not be tested, or if the explanation is unstable under harmless "
    f"changes or breaks under attack. Green otherwise. With fewer than {FEW} texts a second test has to confirm what "
    "an interval says, and the last three lights are green only if as many texts would hardly have missed the "
    "failures that would turn them."
)


_CURVES = (
    "Spearman's correlation between the explanation and that of the same model whose blocks were filled with random "
    "values, mean with its 95 % interval. From left to right more blocks are random. A curve that stays high means "
    "that the method ignores the model's parameters."
)
_ATTACKS = (
    "Result of the best attack, mean with its 95 % interval. The dotted mark is a control: the best of random changes "
    "of the same size."
)
_VERDICTS = (
    "Small print: means with their 95 % intervals over texts, the values behind the light; under the first question, "
    "the gains over random scores on both sides together, of which each decides alone. A method's name links to its "
    "evidence. Passes are those for a single text, a backward pass counting as two; time was measured here, where "
    "methods share predictions."
)


def sections(results: Audit, target: Path | None = None) -> Document:
    """The audit, and, if a folder for pages is given, a page for every method."""
    pages = {} if target is None else _pages(results)
    return Document(
        sections=(
            Section("", (_advice(results),), "advice"),
            Section("Which explanations can be trusted", (_verdicts(results, bool(pages)),), "verdicts"),
            Section("The evidence", tuple(_figures(results)), "figures"),
            Section("How the lights are set", _rules(results.header.number), "rules"),
            Section("What was left out, and why", (Reasons(tuple(results.left_out)),), "left-out"),
            Section("Scores", (ScoresTable(results.table, folded=True),), "scores"),
            Section("About this audit", (Facts(_facts(results)),), "about"),
        ),
        warnings=tuple(warnings(results.table)),
        pages=pages,
    )


def file_of(method: str) -> str:
    """The page of a method."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in method)
    # Settings may differ in a sign only.
    which = "" if method.isidentifier() else f"-{digest_of(method)[:6]}"
    return f"method-{'-'.join(part for part in kept.split('-') if part)}{which}.html"


def answer(evidence: AuditFinding) -> str:
    """The light of one question in a word or two."""
    if evidence.light == "amber" and not evidence.shown:
        return "not shown"
    if evidence.undecided:
        return "undecided"
    if evidence.light == "grey" and evidence.value is not None and evidence.value.count:
        return "too few texts"
    return ANSWERS[evidence.question][evidence.light]


def _advice(results: Audit) -> Advice:
    lights = [one.light for one in results.methods]
    words_of: dict[Light, str] = {"green": "pass", "amber": "should be used with care", "red": "fail"}
    counts = ", ".join(f"{lights.count(light)} {words}" for light, words in words_of.items())
    tried = phrases.count(results.table.texts, "text")
    counts = f"{counts} of {phrases.count(len(lights), 'method')}, tried on {tried}."
    if results.recommended is None:
        light: Light = "red" if set(lights) == {"red"} else "amber"
        return Advice("No method can be recommended.", results.reason, light, counts)
    best = results.recommended
    unfit = results.unfit_for_auto
    reason = f'{results.reason} method="auto" does not follow this: {unfit}.' if unfit else results.reason
    return Advice(f"Recommended: {best}.", reason, results[best].light, counts, file_of(best))


def _verdicts(results: Audit, linked: bool) -> Table:
    rows = tuple(
        (
            one.method,
            (
                Cell(LIGHTS[one.light], light=one.light),
                *(Cell(answer(evidence), _interval(evidence.value), light=evidence.light) for evidence in one.evidence),
                Cell(f"{one.passes:,.0f}"),
                Cell(phrases.seconds(one.seconds)),
            ),
        )
        for one in results.methods
    )
    links = tuple(file_of(one.method) for one in results.methods) if linked else ()
    return Table("", ("method", "verdict", *SHORT.values(), "passes", "time"), rows, _VERDICTS, links=links)


def _interval(value: Summary | None) -> str:
    """A mean with its interval."""
    return "" if value is None or not value.count else phrases.with_interval(value, ".2f")


def _figures(results: Audit) -> Iterator[Part]:
    trust = results.ordered
    models = {trust.header.model: results.header.about}
    tried = Tried(results.header.methods, (trust,), models, scores=bool(results.header.number))
    counts = [count_of(results.table.rows[0], count).metric for count in (COMPREHENSIVE, SUFFICIENT)]
    fronts = [
        Front(f"front{number}", metric, higher, tuple(pareto(results.table, metric)))
        for number, (metric, higher) in enumerate(zip(counts, (True, False), strict=True))
    ]
    yield Plots(tuple(fronts), "Mean with its 95 % interval against passes per text.", "Faithfulness against cost")
    if curves := tuple(randomisation_figures(tried, ORDER)):
        yield Plots(curves, _CURVES, "Randomised blocks")
    attacks = [
        figure for make in (attack_figures, substitution_figures) for _, figures in make(tried) for figure in figures
    ]
    if attacks:
        yield Plots(tuple(attacks), _ATTACKS, "Attacks")
    yield from agreements(results.agreement)


def _rules(number: str) -> tuple[Part, ...]:
    rule_texts = OF_A_NUMBER if number else RULES
    rules = tuple(AnsweredQuestion(QUESTIONS[question], None, "", rule) for question, rule in rule_texts.items())
    return AnsweredQuestions(rules, aside=True), Text(OVERALL, aside=True)


def _facts(results: Audit) -> dict[str, object]:
    header = results.header
    return {
        "Model": _model(header),
        "Data": f"{header.data}, {_of(results.table.texts, header.texts)}",
        "Explained": f"{_explained(header)}, {header.unit} by {header.unit}",
        "Changed harmlessly": _of(*results.changed),
        "Randomised": _of(len(_texts(results.trust.similarities)), _randomised(results.trust)),
        "Attacked": _of(len(_texts(results.trust.attacks)), _attacked(results.trust)),
        "Time": phrases.seconds(results.spent),
        "Estimated before": phrases.seconds(header.estimate.seconds) if header.estimate else "",
        "Versions": ", ".join(f"{name} {version}" for name, version in results.versions.items()),
        "Hashes": ", ".join(f"{part} {digest}" for part, digest in header.identity.items()),
    }


def _explained(header: AuditHead) -> str:
    if header.number:
        return f"score ({header.number})"
    return f"{header.of} of the predicted class" + (
        " against that of each text's other one" if header.contrasts else ""
    )


def _model(header: AuditHead) -> str:
    """The model's name and size; of one without parameters only the outputs are known."""
    if not header.parameters:
        return f"{header.model} (of which only the outputs are known)"
    blocks = f", {phrases.count(header.blocks, 'block')}" if header.blocks else ""
    return f"{header.model} ({header.parameters:,} parameters{blocks})"


def _of(done: int, wanted: int) -> str:
    """The texts that were tested, and of how many if some are missing."""
    return phrases.count(wanted, "text") if done == wanted else f"{done:,} of {phrases.count(wanted, 'text')} so far"


def _randomised(trust: TrustRun) -> int:
    return 0 if trust.header.randomisation is None or not trust.randomised else trust.header.randomisation.texts


def _attacked(trust: TrustRun) -> int:
    return 0 if trust.header.attacks is None or not trust.header.attacks.count else trust.header.attacks.attacked


def _texts(keys: Iterable[SimilarityKey | AttackKey]) -> set[int]:
    return {key.text for key in keys}


def _pages(results: Audit) -> dict[str, Document]:
    texts = shown_texts(read_run(results.folder / FAITHFULNESS))
    return {file_of(one.method): _page(results, one, texts) for one in results.methods}


def _page(results: Audit, one: MethodAudit, texts: Mapping[int, Sequence[Shown]]) -> Document:
    shown = [each for of_text in texts.values() for each in of_text if each.record.row == one.method][:EXAMPLES]
    attacked = substituted(results.folder, results.trust, one.method)
    others = {other.method: file_of(other.method) for other in results.methods if other is not one}
    cost = f"It costs {passes(one.passes)} and {phrases.seconds(one.seconds)} a text."
    best = " It is the method that this audit recommends." if one.method == results.recommended else ""
    return Document(
        title=f"{one.method} on {results.header.model}",
        sections=(
            Section("", (_evidence(one), Text(cost + best)), "evidence"),
            Section("How it explains", tuple(_examples(shown, results.header.number)), "examples"),
            Section("How word substitutions change it", tuple(_exchanged(attacked)), "attacked"),
        ),
        up={"the whole audit": PAGE, **others},
    )


def _evidence(one: MethodAudit) -> AnsweredQuestions:
    answers = (AnsweredQuestion(QUESTIONS[each.question], each.light, answer(each), each.says) for each in one.evidence)
    return AnsweredQuestions((AnsweredQuestion("Verdict:", one.light, LIGHTS[one.light], LIGHTS[one.light]), *answers))


def _examples(shown: Sequence[Shown], number: str) -> Iterator[Part]:
    if not shown:
        return
    kinds = {one.explanation.signed for one in shown}
    signs = "raises the score, blue lowers it" if number else "supports the predicted class, blue contradicts it"
    red = f" Red {signs}." if True in kinds else ""
    purple = " Purple shows how much a unit matters, but not in which direction." if False in kinds else ""
    yield Text(f"The first {phrases.count(len(shown), 'text')} of the data.{red}{purple}", aside=True)
    for one in shown:
        yield HeadedExplanation(one.explanation, f"Text {one.record.text + 1}", f"text-{one.record.text + 1}")


def _exchanged(attacked: Substituted | None) -> Iterator[Part]:
    """The text whose explanation exchanged words changed most, before and after."""
    if attacked is None:
        return
    words = phrases.count(attacked.record.steps, "word")
    caption = (
        f"Text {attacked.record.text + 1} with {words} replaced. {_held(attacked.before, attacked.after)}, and of the "
        f"{phrases.count(attacked.record.k, 'top rank')} {share(attacked.record.rank_change)} go to other "
        "units."
    )
    yield Text(caption, aside=True)
    yield HeadedExplanation(attacked.before, "Before", "attacked-before")
    yield HeadedExplanation(attacked.after, "After", "attacked-after")


def _held(before: Explanation, after: Explanation) -> str:
    """The prediction that an attack kept: a class with its probability, or a score in its own units."""
    if before.outputs == "number":
        places = phrases.places(before.value_full, after.value_full)
        was, now = (phrases.number(e.value_full, places) for e in (before, after))
        return f"The score, {before.target}, stays: {was} before, {now} after"
    was, now = (f"{e.probabilities[e.classes.index(e.target)]:.3f}" for e in (before, after))
    return f"The prediction stays {before.target} ({was} before, {now} after)"
