"""The cost of attacks in embedding space, estimated from one explanation and one step of each method."""

import time
from collections.abc import Sequence

import torch

from raison.core.inputs.parts import Given
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.explaining.batch import prepare
from raison.explaining.settings import Settings
from raison.models.stack.eval_mode import own_precision
from raison.trust.attack_descent import slope
from raison.trust.attack_settings import EmbeddingAttack
from raison.trust.attack_start import AlikeAttacks, AttackedText, started, top_counts, unit_length

PASSES = 32
"""Approximate number of passes of a method that are timed together, since attacked texts form a batch."""


def attack_seconds(
    model: LanguageModel, texts: Sequence[Given], methods: Sequence[Method], settings: Settings, plan: EmbeddingAttack
) -> float:
    """Seconds per token of attacks on all of the methods, each with its control.

    `texts` are of the usual length; as many of them are taken as the method's passes allow. The steps are an upper
    bound: an attack that no longer moves ends early.
    """
    batch = prepare(model, texts, settings)
    counts, unit = top_counts(batch, [plan]), unit_length(model, plan)
    seconds = 0.0
    for method in methods:
        passes = max(1, method.cost(batch.encoding.unit_counts[0]).forwards)
        rows = range(min(len(texts), max(1, PASSES // passes)))
        job = AlikeAttacks(batch, method, tuple(AttackedText(text, plan) for text in rows))
        begun = time.perf_counter()
        # As attacks themselves run.
        with torch.inference_mode(False), own_precision():
            _, start = started(job, counts, unit * plan.epsilon)
            explained = time.perf_counter()
            slope(start, torch.zeros_like(start.embeds))
        stepped = time.perf_counter()
        # The text is explained as it is, at the end of the walk, and under each random change.
        whole = (explained - begun) * (2 + plan.draws) + (stepped - explained) * plan.steps
        seconds += whole / sum(batch.encoding.lengths[text] for text in rows)
    return seconds
