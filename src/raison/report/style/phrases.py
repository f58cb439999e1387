"""Numbers and short phrases, the same in the terminal and in HTML."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raison.core.inputs.unit import PART, Unit, lacks_beginning
from raison.core.inputs.unknown_tokens import unknown_in
from raison.core.note_names import (
    AUTO,
    CANDIDATE_VALUES,
    CAUTION,
    EXTENDED,
    NOISE,
    SELECTED_BY,
    TRAINED_FOR,
    UNSTEADY,
)
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.core.results.notes import cautions_of_text, noise_in
from raison.core.results.scores import Summary
from raison.core.targets.ranking import documents_of, is_ranked
from raison.numerics.statistics.paired import Difference
from raison.report.style.colours import peak
from raison.report.style.gaps import caution_of_gap
from raison.report.style.ranks import among_documents, among_texts

AnyExplanation = Explanation | GenerationExplanation

_QUANTITIES = {
    "probability": "probability",
    "logit": "logit",
    "log_odds": "log-odds",
    "margin": "margin",
    "log_probability": "log-probability",
}


MOST_PLACES = 9
"""Maximum number of places after the point; smaller numbers are written with an exponent."""


def decimals(largest: float) -> int:
    """Places after the point that give the largest number of a group three significant digits."""
    if not math.isfinite(largest) or largest <= 0:
        return 3
    return max(0, min(MOST_PLACES, 2 - math.floor(math.log10(largest))))


def _is_lost(value: float, places: int) -> bool:
    return places >= MOST_PLACES and 0 < abs(value) < 0.5 * 10**-MOST_PLACES


def places(*values: float) -> int:
    """Places after the point for a few numbers that are compared: three to six."""
    return max(3, min(6, decimals(peak(values))))


def interval(low: float, high: float, places: int) -> str:
    """An interval in brackets; empty if it is unknown."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"[{number(low, places)}, {number(high, places)}]"


def with_interval(value: Summary | Difference, spec: str) -> str:
    """A mean in the given format, with its interval if known: one value has none."""
    known = math.isfinite(value.low) and math.isfinite(value.high)
    said = f"{value.mean:{spec}}" + (f" [{value.low:{spec}}, {value.high:{spec}}]" if known else "")
    return said.replace("%", " %")


def number(value: float, places: int) -> str:
    """A number with a fixed count of places, without a minus before zero; n/a for NaN.

    With the most places that there are, a number that would lose all its digits is written with an exponent.
    """
    if not math.isfinite(value):
        return "n/a"
    return f"{value:.2e}" if _is_lost(value, places) else f"{value:z,.{places}f}"


def signed(value: float, places: int) -> str:
    """A score with its sign, so that it reads without colour; n/a for NaN."""
    if not math.isfinite(value):
        return "n/a"
    if _is_lost(value, places):
        return f"{value:+.2e}"
    text = f"{value:+z,.{places}f}"
    return text if any(digit in text for digit in "123456789") else text[1:]


def power(detectable: float, needed: float, places: int) -> str:
    """The smallest difference that these values could have shown, and how many the observed one needs; empty if
    unknown.
    """
    if not math.isfinite(detectable):
        return ""
    return f"80 % power: differences from {number(detectable, places)} on; for this one n = {values_needed(needed)}"


def values_needed(count: float) -> str:
    """The approximate number of values, such as texts or trainings."""
    return f"{count:,.0f}" if math.isfinite(count) else "over 1,000,000"


def score(e: AnyExplanation | Citations, value: float, places: int) -> str:
    """A score of an explanation or of citations, with its sign if scores can have two."""
    return signed(value, places) if e.signed else number(value, places)


def percent(probability: float) -> str:
    """A probability as a percentage that never rounds to certainty."""
    if not math.isfinite(probability):
        return "n/a"
    if 0.9995 <= probability < 1:
        return "> 99.9 %"
    return "< 0.1 %" if 0 < probability < 0.0005 else f"{100 * probability:.1f} %"


def quantity(of: str) -> str:
    """The explained quantity of the outputs, as written in a sentence."""
    return _QUANTITIES.get(of, of)


def goal(e: Explanation) -> str:
    """The explained quantity, such as "probability of positive"."""
    if e.outputs == "number":
        return f"the score, {e.target}" if not is_ranked(e.text) else f"the difference of the scores, {e.target}"
    if e.against is None:
        return f"{quantity(e.of)} of {target(e)}{_own_probability(e)}"
    return f"{quantity(e.of)} of {target(e)} {'over' if e.of == 'margin' else 'minus that of'} {e.against}"


def target(e: Explanation) -> str:
    """The target in words: a class, an answer or a statement by its text, an entity with its tag, a word at a mask."""
    if e.place is not None:
        return _at_place(e, e.target)
    if e.answer is None or e.target == e.classes[1]:
        return e.target
    return f"the answer \N{LEFT DOUBLE QUOTATION MARK}{shorten(e.answer.text, 60)}\N{RIGHT DOUBLE QUOTATION MARK}"


def _at_place(e: Explanation, name: str) -> str:
    """A tag with the text that has it, or a word with its mask."""
    assert e.place is not None, "not an explanation of a position"
    if e.place.kind == "mask":
        return f"\N{LEFT DOUBLE QUOTATION MARK}{name}\N{RIGHT DOUBLE QUOTATION MARK} at {e.place.text}"
    return f"{name} \N{LEFT DOUBLE QUOTATION MARK}{shorten(e.place.text, 60)}\N{RIGHT DOUBLE QUOTATION MARK}"


def named_target(e: Explanation) -> str:
    """The target with its probability on the whole text, such as "joy 93.1 %"."""
    name = target(e) if e.against is None else f"{target(e)}, not {e.against}"
    places = dict(zip(e.classes, e.probabilities, strict=False))
    return f"{name} {percent(places[e.target])}" if e.target in places else name


def _own_probability(e: Explanation) -> str:
    """The probability of an independent label."""
    if e.outputs != "labels":
        return ""
    return f" ({percent(e.probabilities[e.classes.index(e.target)])})"


@dataclass(frozen=True, slots=True)
class OutputPhrase:
    """The model's output in words: `lead` names its kind, `said` is emphasised, `rest` follows."""

    lead: str
    said: str
    rest: str

    @property
    def line(self) -> str:
        """The output in one line or table cell. The lead is left out, except for a score."""
        lead = self.lead.lower() if self.lead == _SCORE else ""
        return " ".join(part for part in (lead, self.said, self.rest) if part)


_SCORE = "Score"
FEW = 10
"""Maximum number of classes whose probabilities are listed."""


def verdict(e: Explanation) -> OutputPhrase:
    """The predicted class and its probability; the labels that reach the threshold, or that there are none; or a
    number.

    The probability of an answer is known only if it is the explained one.
    """
    if e.answer is not None:
        return OutputPhrase("Predicted", e.prediction, percent(e.probabilities[0]) if e.answer.is_predicted else "")
    if e.place is not None:
        known = dict(zip(e.classes, e.probabilities, strict=True))
        share = percent(known[e.prediction]) if e.prediction in known else ""
        lead = "Written" if e.place.kind == "statement" else "Predicted"
        return OutputPhrase(lead, _at_place(e, e.prediction), share)
    if e.outputs == "number":
        if is_ranked(e.text):
            by = f"by {number(e.value_full, max(1, decimals(abs(e.value_full))))}"
            return OutputPhrase("Ranking", e.target, f"{by}{among_documents(e)}")
        rest = f"({e.classes[0]}){among_texts(e)}"
        return OutputPhrase(_SCORE, number(e.value_full, max(1, decimals(abs(e.value_full)))), rest)
    if e.outputs == "labels":
        return _labels(e)
    if e.is_outweighed:
        return OutputPhrase("Written", e.target, percent(e.probabilities[0]))
    return OutputPhrase("Predicted", e.prediction, percent(max(e.probabilities)))


def _labels(e: Explanation) -> OutputPhrase:
    shares = dict(zip(e.classes, e.probabilities, strict=True))
    if not e.decided:
        highest = f"({'highest: ' * (len(shares) > 1)}{e.prediction} {_below(shares[e.prediction], e.threshold)})"
        return OutputPhrase("Labels", f"no label reaches {100 * e.threshold:g} %", highest)
    ordered = sorted(e.decided, key=lambda name: -shares[name])
    parts = ", ".join(f"{name} {percent(shares[name])}" for name in ordered[:FEW])
    if len(ordered) > FEW:
        parts += f", and {len(ordered) - FEW} others"
    return OutputPhrase("Labels", parts, "")


def _below(share: float, threshold: float) -> str:
    """A share with as many digits as it takes to stay below a threshold."""
    texts = (percent(share), *(f"{100 * share:.{places}f} %" for places in range(2, 12)))
    return next((text for text in texts if text[0] in "<>" or float(text[:-2]) < 100 * threshold), texts[0])


def shares(e: Explanation) -> str:
    """The probabilities of the classes; if there are many, the highest ones and those that are explained."""
    ranked = sorted(zip(e.classes, e.probabilities, strict=False), key=lambda pair: -pair[1])
    if len(ranked) <= FEW:
        return ", ".join(f"{name} {percent(share)}" for name, share in zip(e.classes, e.probabilities, strict=False))
    shown = [*ranked[:FEW], *(pair for pair in ranked[FEW:] if pair[0] in (e.target, e.against))]
    parts = ", ".join(f"{name} {percent(share)}" for name, share in shown)
    return f"{parts}, and {len(ranked) - len(shown)} others"


def boxed(e: Explanation, segment: int) -> tuple[int, int]:
    """The characters of the explained answer, entity or mask in one of the texts."""
    if e.answer is not None and segment == 1:
        return e.answer.start, e.answer.end
    return (e.place.start, e.place.end) if e.place is not None and e.place.segment == segment else (0, 0)


def certainty(e: Explanation) -> str | None:
    """The meaning of the box; for an answer also the probabilities of its two ends. None without a box."""
    if e.place is not None:
        return f"the explained target, {target(e)}"
    if e.answer is None:
        return None
    start, end = (percent(share) for share in (e.answer.start_probability, e.answer.end_probability))
    sure = f"begins there {start}, ends there {end}, both {percent(e.probabilities[0])}"
    return f"the explained answer, {shorten(e.answer.text, 60)}: {sure}"


def ends(e: Explanation) -> tuple[str, str]:
    """The meanings of the two ends of the scale: a negative and a positive score, or none and the largest."""
    if not e.signed:
        return "less important", "more important"
    if e.outputs == "number":
        return "lowers the score", "raises the score"
    name = e.target if e.answer is None or e.target == e.classes[1] else "the answer"
    return (f"against {name}" if e.against is None else f"for {e.against}"), f"for {name}"


def text_labels(e: Explanation) -> tuple[str, ...]:
    """The heading of each of the one or two texts."""
    if isinstance(e.text, str):
        return ("",)
    if is_ranked(e.text):
        return ("Query", *(name.capitalize() for name in documents_of(e.target)))
    if e.outputs == "statement":
        return "Prompt", "Answer"
    return ("First text", "Second text") if e.answer is None else ("Question", "Context")


def value_change(e: Explanation) -> str:
    """The explained value of the whole text and of the empty one."""
    places = max(3, decimals(max(abs(e.value_full), abs(e.value_empty))))
    full, empty = number(e.value_full, places), number(e.value_empty, places)
    return f"{full} -> {empty} with every {e.unit} removed ({e.removal})"


def effort(e: AnyExplanation | Citations) -> str:
    """Forward and backward passes and time."""
    backward = f", {count(e.gradients, 'gradient')}" if e.gradients else ""
    return f"{count(e.evaluations, 'evaluation')}{backward}, {seconds(e.seconds)}"


def truncation(e: Explanation) -> str | None:
    """A warning if the model did not read the whole text."""
    if not e.truncated:
        return None
    verb = "was" if e.truncated == 1 else "were"
    side = "beginning" if lacks_beginning(e.text, e.units) else "end"
    unread = "whole" if e.unit == PART else f"{side} of the"
    return f"{count(e.truncated, 'token')} {verb} cut off: the model did not read the {unread} text"


def made_by(e: Explanation) -> str:
    """The method, why it was chosen, what it was trained for, and the metric that selected its map."""
    if AUTO in e.notes:
        taken, _, why = str(e.notes[AUTO]).partition(": ")
        return f"{taken} (auto: {why})"
    metric, trained = e.notes.get(SELECTED_BY), e.notes.get(TRAINED_FOR)
    name = e.method if trained is None else f"{e.method}, trained for {trained}"
    return name if metric is None else f"{name}, the best of {e.notes['candidates']} maps by {metric}"


def choice(e: Explanation) -> str | None:
    """The metric that selected the explanation, and the other candidates."""
    metric = e.notes.get(SELECTED_BY)
    values = [value for value in e.notes.get(CANDIDATE_VALUES, ()) if value is not None]
    if metric is None:
        return None
    lowest, highest = (number(end, 3) for end in (min(values), max(values))) if values else ("n/a", "n/a")
    return f"best of {e.notes['candidates']} maps by {metric}, which gave them {lowest} to {highest}"


def cautions(e: AnyExplanation) -> list[str]:
    """Cautions about the scores, one sentence each, without its full stop."""
    cut = truncation(e) if isinstance(e, Explanation) else None
    lost = unranked(e) if isinstance(e, Explanation) else None
    notes = (cut, lost, caution_of_gap(e), *cautions_of_text(e.notes), e.notes.get(UNSTEADY), e.notes.get(CAUTION))
    return [sentence for sentence in notes if isinstance(sentence, str)]


def unranked(e: Explanation) -> str | None:
    """The number of units that are not ranked, because the server's noise exceeds their scores."""
    if not (few := len(e.unranked)):
        return None
    score_of, verb = ("the score", "is") if few == 1 else ("the scores", "are")
    return (
        f"{score_of} of {count(few, e.unit)} {verb} within the noise of the server's answers "
        f"({noise_in(e.notes):.2g}), and {verb} not ranked"
    )


def noise(notes: Mapping[str, Any]) -> str | None:
    """How much a server's answers changed when requests were repeated, and the effect of omitted numbers."""
    note = notes.get(NOISE)
    if note is None:
        return None
    lack = f"; because the server omits some numbers, wrong by at most {note['bound']:.2g}" if note["bound"] else ""
    return (
        f"{note['value']:.2g}: {count(note['repeated'], 'masked text')} requested again in another order; values "
        f"differ by {note['mean']:.2g} on average{lack}"
    )


def unknown_units(e: AnyExplanation) -> frozenset[int]:
    """Numbers of the units with tokens outside the model's vocabulary."""
    unknown = unknown_in(e.notes)
    return frozenset() if unknown is None else frozenset(unknown.units)


def unread(e: Explanation) -> str | None:
    """The number of tokens outside the model's vocabulary."""
    unknown = unknown_in(e.notes)
    if unknown is None:
        return None
    return f"{percent(unknown.share)} of the tokens, in {count(len(unknown.units), e.unit)}"


def count(amount: int, thing: str) -> str:
    """1 unit, 2 units, 1,000 units."""
    return f"{amount:,} {thing}{'' if amount == 1 else 's'}"


def seconds(value: float) -> str:
    """A duration with two or three significant digits."""
    if not math.isfinite(value):
        return "n/a"
    return f"{1000 * value:.2g} ms" if value < 0.0995 else f"{value:,.{decimals(value)}f} s"


def named(unit: Unit, width: int) -> str:
    """A unit on one line, after its name if the caller gave one."""
    text = shorten(unit.text, width)
    return f"{shorten(unit.name, width)}: {text}" if unit.name else text


def extended(e: Explanation) -> str | None:
    """The units that have more characters than the caller's spans, because these cut a token."""
    units = e.notes.get(EXTENDED)
    if not isinstance(units, list) or not units:
        return None
    labels = ", ".join(shorten(e.units[unit].label, 30) for unit in units if unit < len(e.units))
    return f"to whole tokens, which the given spans cut: {labels}"


def shorten(text: str, width: int) -> str:
    """One line of at most `width` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"
