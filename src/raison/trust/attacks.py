"""Adversarial examples for explanations, in embedding space: the same prediction with another explanation."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import torch

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.draws import generator_for
from raison.core.errors import InputError, UnsupportedError
from raison.core.inputs.parts import Given
from raison.core.method import Method, Property
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.explaining.batch import Batch, prepare
from raison.explaining.prediction_change import predicted
from raison.explaining.settings import Settings
from raison.models.stack.eval_mode import own_precision
from raison.numerics.measures.attacks import (
    probability_change,
    rank_change,
    top_sum_change,
)
from raison.trust.attack_descent import BestChange, descend, disturb
from raison.trust.attack_settings import EmbeddingAttack
from raison.trust.attack_start import AlikeAttacks, AttackedText, started, top_counts, unit_length
from raison.trust.records import Attack, Attacked, AttackKey

_MANY = 1024
"""More copies of a text than fit into any batch, to find the model's batch size."""
_AT_RISK = 16_384
"""Steps of single attacks that are made before anything is written: an interruption loses no more than these."""


def undifferentiable(model: LanguageModel, methods: Sequence[Method]) -> dict[str, str]:
    """The methods, by label, that cannot be attacked in embedding space on this model, each with the reason."""
    reasons = {}
    for method in methods:
        if Property.DIFFERENTIABLE not in method.properties:
            reasons[label_of(method)] = _reason(method)
            continue
        missing = method.lacking(model)
        if missing or not model.offers(WordEmbeddings):
            reasons[label_of(method)] = missing[0] if missing else model.lacks(WordEmbeddings)
    return reasons


def boundary(model: LanguageModel, texts: Sequence[Given], settings: Settings) -> list[int]:
    """The texts whose prediction depends on rounding, so that no change certainly keeps it.

    One pass per text. For a model of one number these are the texts that do not move it, at two passes per text.
    """
    return _undecided(prepare(model, texts, settings))


def attacks(
    model: LanguageModel,
    texts: Sequence[Given],
    methods: Sequence[Method],
    settings: Settings,
    plans: EmbeddingAttack | Sequence[EmbeddingAttack],
    *,
    done: Collection[AttackKey] = (),
) -> Iterator[list[Attacked]]:
    """Attack every method's explanation of every text by every plan, each attack with its control of random changes.

    Yields the records of attacks that were made together, as they are finished. Plans that differ only in their
    objective, alpha and beta share batches. Texts on the boundary (see `boundary`) are left out.

    Args:
        settings: what is explained; the target of the unchanged text stays the target.
        plans: one per objective.
        done: keys of existing records; attacks whose records all exist are not made again.

    Raises:
        InputError: before anything runs, for a plan's k above a text's units, and for two plans of one objective.
        UnsupportedError: a method that is not differentiable (see `undifferentiable`), or a relative epsilon on a model
            without an embedding table.
        NonFiniteError: scores or gradients that are not finite.
    """
    chosen = (plans,) if isinstance(plans, EmbeddingAttack) else tuple(plans)
    _check(model, methods, chosen)
    batch = prepare(model, texts, settings)
    counts = top_counts(batch, chosen)
    left_out = set(_undecided(batch))
    jobs = []
    for method in methods:
        for alike in _alike(chosen):
            rows = _rows(label_of(method), alike, [text for text in range(len(texts)) if text not in left_out], done)
            most = max(1, _AT_RISK // alike[0].steps)
            jobs += [AlikeAttacks(batch, method, portion) for portion in _portions(batch, method, rows, most)]
    return _run(jobs, counts)


def _run(jobs: Sequence[AlikeAttacks], counts: dict[AttackedText, int]) -> Iterator[list[Attacked]]:
    for job in jobs:
        # In a caller's inference mode there would be no graph to differentiate, and its autocast changes numbers.
        with torch.inference_mode(False), own_precision():
            records = _attacked(job, counts)
        yield records


def _attacked(job: AlikeAttacks, counts: dict[AttackedText, int]) -> list[Attacked]:
    """The records of a job. If memory runs out, the job is done in two halves."""
    try:
        return _attacked_at_once(job, counts)
    except torch.OutOfMemoryError:
        if len(job.rows) == 1:
            raise
    # Outside the handler: inside, the exception's traceback would keep the failed batch's tensors alive.
    half = len(job.rows) // 2
    return [
        record for rows in (job.rows[:half], job.rows[half:]) for record in _attacked(replace(job, rows=rows), counts)
    ]


def _attacked_at_once(job: AlikeAttacks, counts: dict[AttackedText, int]) -> list[Attacked]:
    unit = unit_length(job.batch.model, job.plan)
    original, start = started(job, counts, unit * job.plan.epsilon)
    steps = replace(job.plan, learning_rate=unit * job.plan.learning_rate, tolerance=unit * job.plan.tolerance)
    attacked = descend(start, steps)
    sizes = attacked.change.abs().flatten(1).amax(1).cpu()
    seed = job.batch.settings.seed
    # The same random changes for all methods and objectives.
    rngs = [generator_for(seed, "noise", job.batch.encoding.texts[row.text]) for row in job.rows]
    control = disturb(start, job.plan, sizes, rngs)
    records = []
    original_values = start.predicted.value(start.predicted.logits)
    attacks: tuple[tuple[Attack, BestChange], ...] = (("embedding", attacked), ("noise", control))
    for kind, best in attacks:
        for place, row in enumerate(job.rows):
            units = job.batch.encoding.unit_counts[row.text]
            before = original[place, :units].numpy()
            # If no change keeps the prediction, the measures are those of no change.
            after = best.scores[place, :units].numpy() if best.held[place] else before
            was = float(original_values[place])
            records.append(
                Attacked(
                    method=label_of(job.method),
                    attack=kind,
                    objective=row.plan.objective,
                    text=row.text,
                    k=counts[row],
                    rank_change=rank_change(before, after, counts[row]),
                    sum_change=top_sum_change(before, after, counts[row]),
                    probability_change=probability_change(was, float(best.value[place]) if best.held[place] else was),
                    steps=best.steps[place],
                    held=bool(best.held[place]),
                )
            )
    return records


def _check(model: LanguageModel, methods: Sequence[Method], plans: Sequence[EmbeddingAttack]) -> None:
    reasons = undifferentiable(model, methods)
    if reasons:
        raise UnsupportedError(
            "not every method can be attacked in embedding space",
            [f"{label}: {reason}" for label, reason in reasons.items()],
            "Leave these out, or attack them by word substitution.",
        )
    if not plans:
        raise InputError("no attack to run: give at least one EmbeddingAttack.")
    objectives = [plan.objective for plan in plans]
    if len(set(objectives)) < len(objectives):
        raise InputError(
            "two attacks have the same objective, so their records could not be distinguished: give each objective "
            "once."
        )
    for plan in plans:
        unit_length(model, plan)


def _undecided(batch: Batch) -> list[int]:
    return predicted(batch).undecided().nonzero()[:, 0].tolist()


def _alike(plans: Sequence[EmbeddingAttack]) -> list[list[EmbeddingAttack]]:
    """Plans that can share a batch: they differ only in settings that each row has, the objective and its weights."""
    groups: dict[EmbeddingAttack, list[EmbeddingAttack]] = {}
    for plan in plans:
        groups.setdefault(replace(plan, objective="constrained", alpha=1.0, beta=1.0), []).append(plan)
    return list(groups.values())


def _rows(
    label: str, plans: Sequence[EmbeddingAttack], texts: Sequence[int], done: Collection[AttackKey]
) -> list[AttackedText]:
    """The remaining attacks for one method."""
    kinds: tuple[Attack, ...] = ("embedding", "noise")
    return [
        AttackedText(text, plan)
        for text in texts
        for plan in plans
        if not all(AttackKey(label, kind, plan.objective, text) in done for kind in kinds)
    ]


def _portions(batch: Batch, method: Method, rows: Sequence[AttackedText], most: int) -> list[tuple[AttackedText, ...]]:
    """At most `most` rows of similar length, as the model's budget has room for with all the method's passes."""
    lengths = batch.encoding.lengths
    left = sorted(rows, key=lambda row: -lengths[row.text])
    portions = []
    while left:
        longest = left[0].text
        room = len(batch.model.ask(Passes).batches(batch.encoding.select([longest] * _MANY))[0])
        size = max(1, room // max(1, method.cost(batch.encoding.unit_counts[longest]).forwards))
        portions.append(tuple(left[: min(size, most)]))
        left = left[min(size, most) :]
    return portions


# As in randomisation.without_parameters, the reasons are part of headers.
def _reason(method: Method) -> str:
    if method.trained:
        return "its scores come from an explainer that was trained"
    if Property.RANDOM in method.properties:
        return "its scores come from random draws"
    if not method.needs:
        return "it only evaluates the model on texts, which have no gradient"
    return "its scores are not implemented as a differentiable function of word embeddings"
