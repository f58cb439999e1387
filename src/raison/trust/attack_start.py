"""Attacks in embedding space before their first step: the rows that are attacked together, and the method's scores."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import InputError, UnsupportedError
from raison.core.inputs.encoding import KINDS, Encoding
from raison.core.inputs.unit import Text
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.problem import Evaluations, Ledger, Problem
from raison.explaining.batch import Batch
from raison.explaining.prediction_change import predicted
from raison.integration.repeated_texts import repeated
from raison.models.adapters.classifier import Classifier
from raison.numerics.measures.attacks import top_count, top_units
from raison.trust.attack_descent import AttackStart, classify, explain
from raison.trust.attack_settings import EmbeddingAttack


class AttackedText(NamedTuple):
    """A text, by its number, and the attack on its explanation."""

    text: int
    plan: EmbeddingAttack


@dataclass(frozen=True, slots=True)
class AlikeAttacks:
    """Attacks on one method's explanations that are made together; their plans share all but the objective."""

    batch: Batch
    method: Method
    rows: tuple[AttackedText, ...]

    @property
    def plan(self) -> EmbeddingAttack:
        return self.rows[0].plan


def started(job: AlikeAttacks, counts: dict[AttackedText, int], radius: float) -> tuple[Tensor, AttackStart]:
    """The rows before anything is changed, and their scores."""
    batch = job.batch
    ledger = Ledger.empty(len(batch.encoding))
    whole = Problem(batch.model, batch.encoding, batch.target, batch.removal, ledger, Evaluations())
    problem = repeated(whole, [row.text for row in job.rows])
    embeds = batch.model.ask(WordEmbeddings).embed(problem.encoding).detach()
    # Small steps would be lost in half precision.
    embeds = embeds.to(torch.promote_types(embeds.dtype, torch.float32))
    scores = explain(problem, job.method, embeds).detach()
    top = torch.zeros(scores.shape, dtype=torch.bool)
    for place, row in enumerate(job.rows):
        units = batch.encoding.unit_counts[row.text]
        top[place, torch.from_numpy(top_units(scores[place, :units].numpy(), counts[row]))] = True
    with torch.no_grad():
        logits = classify(problem, embeds)
    return scores, AttackStart(
        problem=problem,
        method=job.method,
        embeds=embeds,
        top=top,
        alpha=torch.tensor([row.plan.alpha for row in job.rows], dtype=torch.float64),
        beta=torch.tensor([row.plan.penalty for row in job.rows], dtype=torch.float64),
        predicted=replace(predicted(batch).select([row.text for row in job.rows]), logits=logits),
        radius=radius,
        copies=copies(problem.encoding) if batch.model.strings == 3 else None,
    )


def copies(encoding: Encoding) -> Int[Tensor, "rows tokens"]:
    """For each token, the first token for the same part of the text, which may be read several times."""
    rows, width = encoding.input_ids.shape
    places = torch.arange(width).repeat(rows, 1)
    for row in range(rows):
        first: dict[tuple[int, int], int] = {}
        seen: Counter[tuple[int, int]] = Counter()
        tokens = zip(encoding.unit_ids[row].tolist(), encoding.type_ids[row].tolist(), strict=True)
        for position, (unit, kind) in enumerate(tokens):
            if unit >= 0:
                read = (kind // KINDS, unit)
                places[row, position] = first.setdefault((unit, seen[read]), position)
                seen[read] += 1
    return places


def unit_length(model: LanguageModel, plan: EmbeddingAttack) -> float:
    """The unit of a plan's lengths: the standard deviation of the embedding table's numbers if they are relative."""
    if not plan.relative:
        return 1.0
    if not isinstance(model, Classifier):
        raise UnsupportedError(
            f"epsilon cannot be relative on {model.name}", ["it exposes no embedding table"], "Use relative=False."
        )
    # What the table returns: some models scale its weights.
    with torch.no_grad():
        weight = model.core.get_input_embeddings().weight
        assert isinstance(weight, Tensor)
        rows = torch.arange(len(weight), device=model.device)
        return float(model.embedding_table(rows).double().std())


def top_counts(batch: Batch, plans: Sequence[EmbeddingAttack]) -> dict[AttackedText, int]:
    """The k of every text and plan."""
    return {
        AttackedText(number, plan): checked_count(text, units, plan.share, plan.k)
        for number, (text, units) in enumerate(zip(batch.encoding.texts, batch.encoding.unit_counts, strict=True))
        for plan in plans
    }


def checked_count(text: Text, units: int, share: float, k: int | None) -> int:
    """`top_count`; raises InputError that names the text if `k` exceeds its number of units."""
    if k is not None and k > units:
        raise InputError(
            f"k is {k}, and the text {str(text)!r:.60} has {units} units: give a smaller k, or a share of the units "
            "(share=0.15, k=None)."
        )
    return top_count(units, share, k)
