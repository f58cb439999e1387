"""Methods that look inside a model, on predictions of several tokens: each is explained, and the scores add up."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from raison.core.capabilities.token_predictions import TokenPredictions, TokenRows
from raison.core.method import Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.note_names import COMPLETENESS_GAP
from raison.core.problem import Evaluations, Ledger, Problem
from raison.core.registry import name_of


def looks_inside(model: LanguageModel, method: Method) -> bool:
    """Whether a method needs capabilities that only the single-token predictions of a statement have."""
    return bool(method.lacking(model)) and model.offers(TokenPredictions)


def by_tokens(problem: Problem, method: Method, function: Callable[[Problem, Rngs], Tensor]) -> Tensor:
    """Scores for the log-probability of each text's prediction: the sum of the scores for its tokens.

    (maps, batch, scored). Tokens share their forward passes; each has backward passes of its own.
    """
    ledger, parts = problem.ledger, []
    for rows in problem.model.ask(TokenPredictions).token_rows(problem.encoding):
        part = Problem(
            rows.model,
            rows.encoding,
            rows.target,
            problem.removal,
            Ledger.empty(len(rows.encoding)),
            Evaluations(),
            seed=problem.seed,
        )
        parts.append((rows, function(part, part.generators(name_of(method)))))
        for text in dict.fromkeys(rows.owners):
            rows_of_text = [row for row, owner in enumerate(rows.owners) if owner == text]
            ledger.evaluations[text] += max(part.ledger.evaluations[row] for row in rows_of_text)
            ledger.gradients[text] += sum(part.ledger.gradients[row] for row in rows_of_text)
            ledger.notes[text] |= _noted([part.ledger.notes[row] for row in rows_of_text])
    tokenwise = Property.TOKENWISE in method.properties
    width = problem.encoding.input_ids.shape[1] if tokenwise else max(problem.encoding.unit_counts)
    return _summed(parts, len(problem.encoding), width, tokenwise)


def _summed(parts: Sequence[tuple[TokenRows, Tensor]], texts: int, width: int, tokenwise: bool) -> Tensor:
    """The sums of the rows of each owner; entries past a row's own tokens or units are undefined, and left out."""
    total = torch.zeros(parts[0][1].shape[0], texts, width, dtype=torch.float64)
    for rows, scores in parts:
        counts = rows.encoding.lengths if tokenwise else rows.encoding.unit_counts
        for row, owner in enumerate(rows.owners):
            total[:, owner, : counts[row]] += scores[:, row, : counts[row]].double()
    return total


def _noted(notes: Sequence[dict[str, object]]) -> dict[str, object]:
    """The method's notes on all tokens: gaps add up; other notes are kept if all tokens agree."""
    same = {name: value for name, value in notes[0].items() if all(one.get(name) == value for one in notes)}
    if all(COMPLETENESS_GAP in one for one in notes):
        same[COMPLETENESS_GAP] = sum(float(str(one[COMPLETENESS_GAP])) for one in notes)
    return same
