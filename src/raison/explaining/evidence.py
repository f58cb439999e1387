"""Evidence about texts for metrics: everything announced is computed in one go, the rest on demand."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from raison.core.capabilities.embeddings import Shift
from raison.core.capabilities.hidden_states import HiddenStates
from raison.core.capabilities.other_wordings import OtherWordings
from raison.core.errors import DataError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given
from raison.core.inputs.rationale import Rationale, unit_mask
from raison.core.method import Method
from raison.core.metric import IN_PLACE, GroupMetric, KeepRows, Mask, Metric, Need, Reworded, Rewording
from raison.core.model import LanguageModel
from raison.core.note_names import SELECTED_BY
from raison.core.problem import Evaluations, KeepKey, Ledger, Problem
from raison.core.results.explanation import Explanation
from raison.core.targets.choices import SingleTarget
from raison.core.targets.outputs import Outputs
from raison.core.targets.target import Of, Target
from raison.explaining.attribution import scores_of, shifted_scores
from raison.explaining.batch import Batch, prepare
from raison.explaining.prediction_change import predicted
from raison.explaining.returned_values import announced, check_keeps
from raison.explaining.settings import Settings
from raison.explaining.sources.rewordings import worded
from raison.methods import CATALOGUE
from raison.models.passes.batching import naming_the_longest

JUDGED: Mapping[Outputs, Of] = {"number": "logit", "statement": "log_probability"}
"""The value that metrics use if it is not a probability."""

EXPLAINS_AGAIN = frozenset({Need.EMBEDDINGS, Need.METHOD})
"""What a metric needs to run the method again."""

Shifted = dict[tuple[int, Shift], np.ndarray]
"""Scores under a shift, by the explanation's number."""
Rewordings = dict[tuple[int, Rewording], Reworded | None]
"""Results for other wordings, by the explanation's number; None for a wording that is discarded."""


@dataclass(frozen=True, slots=True)
class TextEvidence:
    """core.metric.Evidence for one explanation of one text of a batch.

    `marked` holds the text's rationales, one per annotator. `number` is the explanation's among all of the batch.
    `metric` is the one that it is given to.
    """

    batch: Batch
    text: int
    explanation: Explanation
    marked: tuple[Rationale, ...] = ()
    number: int = 0
    shifted: Shifted = field(default_factory=dict)
    wordings: Rewordings = field(default_factory=dict)
    metric: Metric | None = None

    @property
    def rationales(self) -> tuple[Mask, ...]:
        return tuple(np.array(unit_mask(one, self.explanation.units), dtype=bool) for one in self.marked)

    def probabilities(self, keeps: KeepRows, removal: str) -> np.ndarray:
        return self._of_class(JUDGED.get(self.batch.model.outputs, "probability"), keeps, removal)

    def log_probabilities(self, keeps: KeepRows, removal: str) -> np.ndarray:
        return self._of_class("log_probability", keeps, removal)

    def values(self, keeps: KeepRows, removal: str) -> np.ndarray:
        target = target_of(self.batch, [self.explanation])
        return target.row(0, len(keeps)).scalar(self._logits(keeps, removal)).numpy()

    def shifted_scores(self, shift: Shift) -> np.ndarray:
        if is_selected(self.explanation):
            return np.full(len(self.explanation.units), np.nan)
        if (self.number, shift) not in self.shifted:
            compute_shifted([self], shift)
        # A copy, here and below: a metric may work in place, and others get the same scores.
        return self.shifted[self.number, shift].copy()

    def reworded(self, rewording: Rewording) -> Reworded | None:
        if is_selected(self.explanation):
            return None
        if (self.number, rewording) not in self.wordings:
            compute_reworded([Wording(self, rewording)])
        found = self.wordings[self.number, rewording]
        return None if found is None else replace(found, scores=found.scores.copy())

    def resolve(self, removal: str) -> str:
        """The model's own name of a removal, see IN_PLACE."""
        if removal != IN_PLACE:
            return removal
        stated = self.explanation.removal
        return stated if stated != "delete" else next(name for name in self.batch.model.removals if name != "delete")

    def _of_class(self, of: Of, keeps: KeepRows, removal: str) -> np.ndarray:
        """A scalar of the explained class alone, whatever it was contrasted with."""
        index = torch.tensor([_class(self.batch, self.explanation, self.explanation.target)])
        target = Target(index, None, of, self.batch.model.multi_label)
        return target.row(0, len(keeps)).scalar(self._logits(keeps, removal)).numpy()

    def _logits(self, keeps: KeepRows, removal: str) -> torch.Tensor:
        check_keeps(keeps, self.metric, "measure", self.explanation.text, len(self.explanation.units))
        kind = self.resolve(removal)
        cache = self.batch.evaluations
        keys = [KeepKey.of(self.text, kind, row.tobytes()) for row in keeps]
        if any(key not in cache.logits for key in keys):
            _compute(self.batch, kind, {self.text: [keeps]})
        return torch.stack([cache.logits[key] for key in keys]).double()


@dataclass(frozen=True, slots=True)
class Wording:
    """Other words for the text of an explanation."""

    evidence: TextEvidence
    rewording: Rewording


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One text of a batch."""

    batch: Batch
    row: int

    @property
    def ids(self) -> torch.Tensor:
        encoding = self.batch.encoding
        return encoding.input_ids[self.row][encoding.attention_mask[self.row].bool()]

    @property
    def logits(self) -> torch.Tensor:
        return self.batch.full[self.row]


@dataclass(frozen=True, slots=True)
class TextsEvidence:
    """core.metric.GroupEvidence for a group of texts.

    `encode` gives the texts for a pass. `kept` holds what the metric made of them, for the next evidence about them.
    """

    model: LanguageModel
    encode: Callable[[], Encoding]
    kept: dict[str, np.ndarray]

    def hidden_states(self) -> list[np.ndarray]:
        encoding = self.encode()
        with naming_the_longest(encoding):
            return [states.numpy() for states in self.model.ask(HiddenStates).hidden_states(encoding)]

    def once(self, name: str, made: Callable[[], np.ndarray]) -> np.ndarray:
        if name not in self.kept:
            self.kept[name] = made()
            # It serves all methods and seeds.
            self.kept[name].flags.writeable = False
        return self.kept[name]


def prefetch(evidence: Sequence[TextEvidence], metrics: Sequence[Metric]) -> None:
    """Compute everything that the metrics announce, with all texts together in each pass."""
    wanted: dict[str, dict[int, list[KeepRows]]] = {}
    shifts: dict[Shift, list[TextEvidence]] = {}
    wordings: dict[tuple[int, Rewording], Wording] = {}
    for text_evidence in evidence:
        explanation = text_evidence.explanation
        for metric in metrics:
            for removal, keeps in announced(metric, explanation).items():
                wanted.setdefault(text_evidence.resolve(removal), {}).setdefault(text_evidence.text, []).append(keeps)
            if is_selected(explanation):
                continue
            for shift in metric.shifts(explanation):
                shifts.setdefault(shift, []).append(text_evidence)
            for rewording in metric.rewordings(explanation):
                wordings[text_evidence.number, rewording] = Wording(text_evidence, rewording)
    for removal, keeps_of in wanted.items():
        _compute(evidence[0].batch, removal, keeps_of)
    for shift, those in shifts.items():
        compute_shifted(those, shift)
    if wordings:
        compute_reworded(list(wordings.values()))


def compute_shifted(evidence: Sequence[TextEvidence], shift: Shift) -> None:
    """Explain the texts again under a shift, all those of one method together."""
    groups: dict[str, list[TextEvidence]] = {}
    for text_evidence in evidence:
        groups.setdefault(_kind(text_evidence.explanation), []).append(text_evidence)
    shared: dict[tuple[str, tuple[int, ...]], Evaluations] = {}
    for those in groups.values():
        # Methods that explain the same texts share their perturbed texts.
        same = those[0].explanation.removal, tuple(text_evidence.text for text_evidence in those)
        evaluations = shared.setdefault(same, Evaluations())
        scores = shifted_scores(_batch_like(those), recreated(those[0].explanation), shift, evaluations)
        for text_evidence, row in zip(those, scores, strict=True):
            text_evidence.shifted[text_evidence.number, shift] = row


def compute_reworded(wordings: Sequence[Wording]) -> None:
    """Predict all wordings once, and explain those that count, all those of one method together."""
    model, texts = worded(wordings[0].evidence.batch.model, [wording.rewording for wording in wordings])
    batches: dict[str, Batch] = {}
    shared: dict[tuple[str, tuple[int, ...]], Evaluations] = {}
    groups: dict[str, list[tuple[Wording, int]]] = {}
    inputs = [(texts.get(wording.rewording), _span(wording.evidence.explanation)) for wording in wordings]
    listed = list(dict.fromkeys(one for one in inputs if one[0] is not None))
    for wording, one in zip(wordings, inputs, strict=True):
        text_evidence = wording.evidence
        removal = text_evidence.explanation.removal
        text_evidence.wordings[text_evidence.number, wording.rewording] = None
        if one[0] is None:
            continue
        if removal not in batches:
            batches[removal] = _predicted(model, listed, text_evidence.batch, removal)
        row = listed.index(one)
        if _counts(wording, BatchRow(batches[removal], row)):
            groups.setdefault(_kind(text_evidence.explanation), []).append((wording, row))
    for pairs in groups.values():
        those, rows = [wording for wording, _ in pairs], [row for _, row in pairs]
        removal = those[0].evidence.explanation.removal
        # Methods that explain the same wordings share their perturbed texts.
        evaluations = shared.setdefault((removal, tuple(rows)), Evaluations())
        _explain_wordings(those, _wordings_like(those, batches[removal], rows, evaluations))


def _span(explanation: Explanation) -> SingleTarget | None:
    """The statement that is explained: no wording moves its place in the answer."""
    place = explanation.place
    return None if place is None else (place.start, place.end)


def _predicted(
    model: LanguageModel, listed: Sequence[tuple[Given | None, SingleTarget | None]], like: Batch, removal: str
) -> Batch:
    """Wordings and their targets as a batch. A wording may be longer than its text: it is cut, because the text itself
    fitted."""
    texts = [text for text, _ in listed if text is not None]
    spans = [span for _, span in listed if span is not None]
    target = spans if model.offers(OtherWordings) else None
    return prepare(model, texts, Settings(like.encoding.unit, target, removal=removal, truncate=target is None))


def target_of(batch: Batch, explanations: Sequence[Explanation]) -> Target:
    """The target that the explanations, all of one kind, were made for."""
    index = torch.tensor([_class(batch, e, e.target) for e in explanations])
    against = [_class(batch, e, e.against) for e in explanations if e.against is not None]
    of: Of = explanations[0].of  # type: ignore[assignment]
    return Target(index, torch.tensor(against) if against else None, of, batch.model.multi_label)


def _class(batch: Batch, e: Explanation, name: str) -> int:
    """The number of a class; at a place of the text, classes are the explanation's own."""
    return (batch.model.classes if e.place is None else e.classes).index(name)


def _batch_like(evidence: Sequence[TextEvidence]) -> Batch:
    """The texts of the evidence as a batch with the targets, removal and seed of their explanations."""
    batch, rows = evidence[0].batch, [text_evidence.text for text_evidence in evidence]
    explanations = [text_evidence.explanation for text_evidence in evidence]
    # Its only use is on shifted embeddings, for which nothing is known.
    like = batch.on(batch.model).select(rows).towards(target_of(batch, explanations)).seeded(explanations[0].seed)
    return replace(like, removal=explanations[0].removal)


def _wordings_like(wordings: Sequence[Wording], batch: Batch, rows: Sequence[int], evaluations: Evaluations) -> Batch:
    """Some rows of a batch of wordings with the targets and seed of the explanations of their texts."""
    explanations = [wording.evidence.explanation for wording in wordings]
    like = batch.on(batch.model).select(rows).towards(target_of(batch, explanations)).seeded(explanations[0].seed)
    return replace(like, evaluations=evaluations)


def _explain_wordings(wordings: Sequence[Wording], batch: Batch) -> None:
    """Fill in the method's scores of each row of the batch."""
    scores = scores_of(batch, recreated(wordings[0].evidence.explanation))
    for wording, units, row in zip(wordings, batch.encoding.units, scores, strict=True):
        text_evidence = wording.evidence
        text_evidence.wordings[text_evidence.number, wording.rewording] = Reworded(units, row)


def _counts(wording: Wording, after: BatchRow) -> bool:
    text_evidence = wording.evidence
    target = target_of(text_evidence.batch, [text_evidence.explanation])
    return is_harmless(BatchRow(text_evidence.batch, text_evidence.text), after, target, wording.rewording.tolerance)


def is_harmless(before: BatchRow, after: BatchRow, target: Target, tolerance: float) -> bool:
    """Whether the model's input tokens change, and the explained class keeps about the same probability.

    `target` is that of the one text. For a number, and for the log-probability of a statement, `tolerance` is a share
    of how far the text moves it.
    """
    if torch.equal(before.ids, after.ids):
        return False
    was = replace(predicted(before.batch).select([before.row]), index=target.index)
    return bool(was.within(after.logits[None].double(), tolerance))


def is_selected(explanation: Explanation) -> bool:
    """Whether a metric chose the map; explaining again would give the unselected one."""
    return SELECTED_BY in explanation.notes


def _kind(explanation: Explanation) -> str:
    """A key that is equal for explanations that one run of a method can give again."""
    e = explanation
    return repr((e.method, e.config, e.seed, e.of, e.against is None, e.removal))


def check_recreated(methods: Iterable[str], metrics: Iterable[Metric | GroupMetric]) -> None:
    """Raise UnsupportedError if a metric explains again and one of the methods cannot be made from its name."""
    if any(metric.needs & EXPLAINS_AGAIN for metric in metrics):
        for method in methods:
            _refuse_unnamed(method)


def _refuse_unnamed(method: str) -> None:
    if method not in CATALOGUE.names:
        raise UnsupportedError(
            f"the explanations of {method} cannot be made again, as a metric asks",
            ["only methods of the catalogue are found by their names"],
            "Leave the metric out, or add the method's file to raison/methods.",
        )


def recreated(explanation: Explanation) -> Method:
    """The method of an explanation with its settings. UnsupportedError for one that is not of the catalogue, DataError
    for other settings."""
    _refuse_unnamed(explanation.method)
    config = {name: tuple(value) if isinstance(value, list) else value for name, value in explanation.config.items()}
    try:
        return CATALOGUE.get(explanation.method)(**config)
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(f"the explanation's config is not that of {explanation.method}: {error}.") from None


def _compute(batch: Batch, removal: str, keeps_of: dict[int, list[KeepRows]]) -> None:
    """Fill the shared evaluations."""
    keeps = [
        torch.from_numpy(np.concatenate(keeps_of[text])) if text in keeps_of else torch.ones(0, units, dtype=torch.bool)
        for text, units in enumerate(batch.encoding.unit_counts)
    ]
    target = Target(torch.zeros(len(keeps), dtype=torch.long), None, "probability")
    ledger = Ledger.empty(len(keeps))
    Problem(batch.model, batch.encoding, target, removal, ledger, batch.evaluations).values(keeps)
