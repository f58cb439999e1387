"""What metrics may ask about texts: all that they announced is computed in one go, the rest on the spot."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from raison.core.explanation import Explanation
from raison.core.method import Method
from raison.core.metric import IN_PLACE, KeepRows, Mask, Metric, Reworded, Rewording
from raison.core.model import Shift
from raison.core.problem import Evaluations, Ledger, Problem
from raison.core.rationale import Rationale, unit_mask
from raison.core.target import Of, Target
from raison.explaining.attribution import Batch, Settings, prepare, scores_of, shifted_scores
from raison.methods import CATALOGUE

Shifted = dict[tuple[int, Shift], np.ndarray]
"""Scores under a shift, by the explanation's number."""
Rewordings = dict[tuple[int, Rewording], Reworded | None]
"""What other wordings gave, by the explanation's number; None for one that does not count."""


@dataclass(frozen=True, slots=True)
class TextEvidence:
    """core.metric.Evidence for one explanation of one text of a batch.

    `marked` holds the text's rationales, one per annotator. `number` is the explanation's among all of the batch.
    """

    batch: Batch
    text: int
    explanation: Explanation
    marked: tuple[Rationale, ...] = ()
    number: int = 0
    shifted: Shifted = field(default_factory=dict)
    wordings: Rewordings = field(default_factory=dict)

    @property
    def rationales(self) -> tuple[Mask, ...]:
        return tuple(np.array(unit_mask(one, self.explanation.units), dtype=bool) for one in self.marked)

    def probabilities(self, keeps: KeepRows, removal: str) -> np.ndarray:
        of: Of = "logit" if self.batch.model.outputs == "number" else "probability"
        target = Target(self._classes(self.explanation.target), None, of, self.batch.model.multi_label)
        return target.row(0, len(keeps)).scalar(self._logits(keeps, removal)).numpy()

    def values(self, keeps: KeepRows, removal: str) -> np.ndarray:
        target = target_of(self.batch, [self.explanation])
        return target.row(0, len(keeps)).scalar(self._logits(keeps, removal)).numpy()

    def shifted_scores(self, shift: Shift) -> np.ndarray:
        if _is_selected(self.explanation):
            return np.full(len(self.explanation.units), np.nan)
        if (self.number, shift) not in self.shifted:
            compute_shifted([self], shift)
        return self.shifted[self.number, shift]

    def reworded(self, rewording: Rewording) -> Reworded | None:
        if _is_selected(self.explanation):
            return None
        if (self.number, rewording) not in self.wordings:
            compute_reworded([(self, rewording)])
        return self.wordings[self.number, rewording]

    def resolve(self, removal: str) -> str:
        """The model's own name of a removal, see IN_PLACE."""
        if removal != IN_PLACE:
            return removal
        stated = self.explanation.removal
        return stated if stated != "delete" else next(name for name in self.batch.model.removals if name != "delete")

    def _logits(self, keeps: KeepRows, removal: str) -> torch.Tensor:
        kind = self.resolve(removal)
        cache = self.batch.evaluations
        keys = [cache.key(self.text, kind, row.tobytes()) for row in keeps]
        if any(key not in cache.logits for key in keys):
            _compute(self.batch, kind, {self.text: [keeps]})
        return torch.stack([cache.logits[key] for key in keys]).double()

    def _classes(self, name: str) -> torch.Tensor:
        return torch.tensor([self.batch.model.classes.index(name)])


@dataclass(frozen=True, slots=True)
class TextsEvidence:
    """core.metric.GroupEvidence for a batch of texts."""

    batch: Batch

    def hidden_states(self) -> list[np.ndarray]:
        return [states.numpy() for states in self.batch.model.hidden_states(self.batch.encoding)]


def prefetch(evidence: Sequence[TextEvidence], metrics: Sequence[Metric]) -> None:
    """Compute everything that the metrics announce, each pass with as many texts as there are."""
    wanted: dict[str, dict[int, list[KeepRows]]] = {}
    shifts: dict[Shift, list[TextEvidence]] = {}
    rewordings: dict[tuple[int, Rewording], TextEvidence] = {}
    for found in evidence:
        for metric in metrics:
            for removal, keeps in metric.keeps(found.explanation).items():
                wanted.setdefault(found.resolve(removal), {}).setdefault(found.text, []).append(keeps)
            if _is_selected(found.explanation):
                continue
            for shift in metric.shifts(found.explanation):
                shifts.setdefault(shift, []).append(found)
            rewordings |= {(found.number, rewording): found for rewording in metric.rewordings(found.explanation)}
    for removal, keeps_of in wanted.items():
        _compute(evidence[0].batch, removal, keeps_of)
    for shift, those in shifts.items():
        compute_shifted(those, shift)
    if rewordings:
        compute_reworded([(found, rewording) for (_, rewording), found in rewordings.items()])


def compute_shifted(evidence: Sequence[TextEvidence], shift: Shift) -> None:
    """Explain the texts again under a shift, all those of one method together."""
    groups: dict[str, list[TextEvidence]] = {}
    for found in evidence:
        groups.setdefault(_kind(found.explanation), []).append(found)
    for those in groups.values():
        explanations = [found.explanation for found in those]
        scores = shifted_scores(_batch_like(those), _method_of(explanations[0]), shift)
        for found, row in zip(those, scores, strict=True):
            found.shifted[found.number, shift] = row


def compute_reworded(asked: Sequence[tuple[TextEvidence, Rewording]]) -> None:
    """Predict all wordings once, and explain those that count, all those of one method together."""
    first = asked[0][0].batch
    texts = list(dict.fromkeys(rewording.text for _, rewording in asked))
    wordings: dict[str, Batch] = {}
    shared: dict[tuple[str, tuple[int, ...]], Evaluations] = {}
    groups: dict[str, list[tuple[TextEvidence, Rewording]]] = {}
    for found, rewording in asked:
        removal = found.explanation.removal
        if removal not in wordings:
            # A wording may be longer than its text: what was fitting must not fail now.
            wordings[removal] = prepare(
                first.model, texts, Settings(first.encoding.unit, removal=removal, truncate=True)
            )
        found.wordings[found.number, rewording] = None
        if _counts(found, rewording, wordings[removal], texts.index(rewording.text)):
            groups.setdefault(_kind(found.explanation), []).append((found, rewording))
    for those in groups.values():
        removal = those[0][0].explanation.removal
        rows = [texts.index(rewording.text) for _, rewording in those]
        # Methods that explain the same wordings share their perturbed texts.
        evaluations = shared.setdefault((removal, tuple(rows)), Evaluations())
        _explain_wordings(those, _wordings_like(those, wordings[removal], rows, evaluations))


def target_of(batch: Batch, explanations: Sequence[Explanation]) -> Target:
    """The target that the explanations, all of one kind, were made for."""
    classes = batch.model.classes
    index = torch.tensor([classes.index(e.target) for e in explanations])
    against = [classes.index(e.against) for e in explanations if e.against is not None]
    of: Of = explanations[0].of  # type: ignore[assignment]
    return Target(index, torch.tensor(against) if against else None, of, batch.model.multi_label)


def _batch_like(evidence: Sequence[TextEvidence]) -> Batch:
    """The texts of the evidence as a batch with the targets, removal and seed of their explanations."""
    batch, rows = evidence[0].batch, [found.text for found in evidence]
    explanations = [found.explanation for found in evidence]
    return replace(
        batch,
        encoding=batch.encoding.select(rows),
        full=batch.full[rows],
        target=target_of(batch, explanations),
        removal=explanations[0].removal,
        settings=replace(batch.settings, seed=explanations[0].seed),
    )


def _wordings_like(
    those: Sequence[tuple[TextEvidence, Rewording]], wordings: Batch, rows: Sequence[int], evaluations: Evaluations
) -> Batch:
    """Some rows of the wordings with the targets and seed of the explanations of their texts."""
    explanations = [found.explanation for found, _ in those]
    return replace(
        wordings,
        encoding=wordings.encoding.select(rows),
        full=wordings.full[list(rows)],
        target=target_of(wordings, explanations),
        settings=replace(wordings.settings, seed=explanations[0].seed),
        evaluations=evaluations,
        maps={},
        attributed={},
    )


def _explain_wordings(those: Sequence[tuple[TextEvidence, Rewording]], batch: Batch) -> None:
    """Fill in what the method says of each row of the batch."""
    scores = scores_of(batch, _method_of(those[0][0].explanation))
    for (found, rewording), units, row in zip(those, batch.encoding.units, scores, strict=True):
        found.wordings[found.number, rewording] = Reworded(units, row)


def _counts(found: TextEvidence, rewording: Rewording, wordings: Batch, row: int) -> bool:
    target = target_of(found.batch, [found.explanation])
    return is_harmless((found.batch, found.text), (wordings, row), target, rewording.tolerance)


def is_harmless(text: tuple[Batch, int], wording: tuple[Batch, int], target: Target, tolerance: float) -> bool:
    """Whether the model's input tokens change and the explained class keeps about the same probability.

    Texts are rows of batches; `target` is that of the one text.
    """
    (batch, number), (wordings, row) = text, wording
    before, after = batch.encoding, wordings.encoding
    ids = before.input_ids[number][before.attention_mask[number].bool()]
    if torch.equal(ids, after.input_ids[row][after.attention_mask[row].bool()]):
        return False
    logits = torch.stack([batch.full[number], wordings.full[row]]).double()
    was, now = replace(target, against=None, of="probability").row(0, 2).scalar(logits).tolist()
    return bool(abs(now - was) <= tolerance)


def _is_selected(explanation: Explanation) -> bool:
    """Whether a metric chose the map; explaining again would give the unselected one."""
    return "selected_by" in explanation.notes


def _kind(explanation: Explanation) -> str:
    """The same for explanations that one run of a method gives again."""
    e = explanation
    return repr((e.method, e.config, e.seed, e.of, e.against is None, e.removal))


def _method_of(explanation: Explanation) -> Method:
    config = {name: tuple(value) if isinstance(value, list) else value for name, value in explanation.config.items()}
    return CATALOGUE.get(explanation.method)(**config)


def _compute(batch: Batch, removal: str, keeps_of: dict[int, list[KeepRows]]) -> None:
    """Fill the shared evaluations."""
    keeps = [
        torch.from_numpy(np.concatenate(keeps_of[text])) if text in keeps_of else torch.ones(0, units, dtype=torch.bool)
        for text, units in enumerate(batch.encoding.unit_counts)
    ]
    target = Target(torch.zeros(len(keeps), dtype=torch.long), None, "probability")
    ledger = Ledger.empty(len(keeps))
    Problem(batch.model, batch.encoding, target, removal, ledger, batch.evaluations).values(keeps)
