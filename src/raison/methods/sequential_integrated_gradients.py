"""Sequential integrated gradients (SIG)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capability import Capability
from raison.core.dims import Embeddings
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.note_names import BASELINE
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.integration.baselines import Baseline, baseline_embeddings, baseline_name
from raison.integration.differentiable_gradients import integrate_at, values_at
from raison.integration.repeated_texts import charge, own_embeddings, portions, repeated
from raison.integration.straight_path import integrate
from raison.numerics.gradients.quadrature import gauss_legendre


@dataclass(frozen=True)
class SequentialIntegratedGradients(Method):
    """Integrated gradients with a separate path for each unit, along which only this unit changes.

    For a token t of unit i, score_t = (x_t - b_t) . integral_0^1 d v(b^i + a (x - b^i)) / d e_t da (Enguehard 2023),
    with v the target, x the word embeddings, b those of the baseline, and b^i equal to b at the tokens of unit i and to
    x elsewhere. The integral uses `steps` Gauss-Legendre nodes; products are summed over the embedding's features.
    Returns (batch, tokens), signed, in units of the target. Special tokens score zero.

    `baseline` is as for integrated_gradients: "removal" is the token that the problem's removal puts in place (a mask
    token if the tokenizer has one, as in the paper); "mask", "ellipsis", "unk" and "pad" name a token; "zero" is a
    vector of zeros. The note `baseline` says which was used. The caller chooses the units (unit="word": all tokens of a
    word move together; unit="token": each alone).

    n * steps forward and as many backward passes, those of all texts and units batched together.

    Guarantees, by the fundamental theorem of calculus and up to the quadrature's error, that the scores of unit i's
    tokens sum to v(x) - v(b^i): the effect of removing the unit alone, as given by occlusion. `steps=None` computes
    that difference instead of the integral, without error, in n + 1 forward passes. (It does not give the split among a
    unit's tokens, which the unit's score does not need.) The scores of all units do not sum to v(x) - v(b). A unit that
    changes nothing in this text scores zero.

    Differences from the paper: a unit may be a token, a word or a sentence; scores are not divided by their L2 norm,
    which changes no rank; the class is that of the text, where the public version takes the largest logit at each point
    of the path; positions are embedded once, where it adds them twice.

    Reference: enguehard2023sequential.
    """

    steps: Annotated[
        int | None,
        Setting(least=1, words="a whole number of at least 1, such as 50, or None for the difference without a path"),
    ] = 50
    baseline: Baseline = "removal"

    reference: ClassVar[str] = "enguehard2023sequential"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.SIGNED, Property.DUMMY, Property.PATH, Property.DIFFERENTIABLE}
    )
    passes: ClassVar[str] = "n steps forward + n steps backward; n + 1 forward with steps=None"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        name = baseline_name(problem, "sequential_integrated_gradients", self.baseline)
        problem.note(BASELINE, [name] * len(problem.encoding))
        ends = own_embeddings(problem)
        return self._scores(problem, baseline_embeddings(problem, ends, name), ends)

    def attribute_from(self, problem: Problem, start: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.attribute_from: each unit in turn starts from `start`."""
        ends = own_embeddings(problem)
        return self._scores(problem, start.to(ends), ends)

    def scores_at(self, problem: Problem, embeds: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.scores_at. The baseline stays where it is."""
        name = baseline_name(problem, "sequential_integrated_gradients", self.baseline)
        rows = _paths(problem)
        texts, units = (list(part) for part in zip(*rows, strict=True))
        part = repeated(problem, texts)
        moves = (part.encoding.unit_ids == torch.as_tensor(units)[:, None]).to(embeds.device)[..., None]
        end = embeds[texts]
        begin = torch.where(moves, baseline_embeddings(problem, embeds, name)[texts], end)
        if self.steps is None:
            change = values_at(problem, embeds)[texts] - values_at(part, begin)
            scores = _first_token(moves[..., 0]).to(change.device) * change[:, None]
        else:
            scores = integrate_at(part, begin, end, *gauss_legendre(self.steps))
        empty = torch.zeros(problem.encoding.input_ids.shape, dtype=torch.float64, device=scores.device)
        return empty.index_add(0, torch.as_tensor(texts, device=scores.device), scores.double())

    def cost(self, units: int) -> Cost:
        if self.steps is None:
            return Cost(forwards=units + 1)
        return Cost(forwards=units * self.steps, backwards=units * self.steps)

    def _scores(self, problem: Problem, starts: Embeddings, ends: Embeddings) -> Float[Tensor, "batch scored"]:
        encoding = problem.encoding
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
        full = None
        if self.steps is None:
            full = torch.cat(problem.values(encoding.whole))
        for some in portions(_paths(problem), ends[0].numel()):
            texts, units = (list(part) for part in zip(*some, strict=True))
            part = repeated(problem, texts)
            width = part.encoding.input_ids.shape[1]
            moves = (part.encoding.unit_ids == torch.as_tensor(units)[:, None]).to(ends.device)[..., None]
            end = ends[texts, :width]
            begin = torch.where(moves, starts[texts, :width], end)
            if self.steps is None:
                assert full is not None
                part_scores = _first_token(moves[..., 0]) * (full[texts] - part.values_at(begin))[:, None]
            else:
                part_scores, _ = integrate(part, begin, end, *gauss_legendre(self.steps))
            charge(problem, texts, part)
            # Tokens that do not move score zero, so each sum has only one term other than zero.
            scores[:, :width].index_add_(0, torch.as_tensor(texts), part_scores)
        return scores


def _paths(problem: Problem) -> list[tuple[int, int]]:
    """One text and unit per path: a text as often as it has units."""
    return [(text, unit) for text, count in enumerate(problem.encoding.unit_counts) for unit in range(count)]


def _first_token(moves: Bool[Tensor, "rows tokens"]) -> Float[Tensor, "rows tokens"]:
    """1 at the first token that moves."""
    return (moves & (moves.cumsum(1) == 1)).cpu().double()
