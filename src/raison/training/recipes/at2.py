"""Learning the weights of a writer's attention heads from random removals of sources (AT2)."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raison.core.capabilities.answer_attention import AnswerAttention
from raison.core.errors import InputError
from raison.core.inputs.unit import PART
from raison.core.targets.choices import SingleTarget
from raison.data.question_rows import QuestionRow
from raison.data.sourced import Passages, known_sources
from raison.explaining.answers import answers_of, standing_for
from raison.jobs import disk
from raison.jobs.folder import AT2
from raison.jobs.identity import DATA, SETTINGS, digest_of, training_in
from raison.jobs.store import RecordStore
from raison.models.adapters.writing.writer import Writer
from raison.models.derived.identity import identity_of
from raison.models.derived.trained_heads import HeadsCard, card_of, write
from raison.numerics.attention.head_weights import Ablated, correlations, learned_weights
from raison.progress import progress_bar
from raison.training.recipes.card import TrainingCall, determining, run_notes
from raison.training.settings.at2 import At2Settings as At2Settings

JOURNAL = "ablations.jsonl"
FEWEST = 2
"""The least number of sources of a question whose removals say something about weights."""
KEEP = 0.5
"""The probability with which a removal keeps a source."""
SQUAD = "squad, the training part"


def squad_rows(settings: At2Settings) -> list[QuestionRow]:
    """Questions of SQuAD's training part, whose answers the model writes. Raises DataError."""
    how = Passages(settings.others, settings.sentences)
    known = known_sources("squad", settings.questions, how, part="train", seed=settings.seed)
    return [QuestionRow(number, one.question, one.sources) for number, one in enumerate(known)]


def train_at2(
    writer: Writer, rows: Sequence[QuestionRow], out: Path, settings: At2Settings, data: str = SQUAD, command: str = ""
) -> HeadsCard:
    """Learn the weights from the first questions of `rows` and save them to `out`; returns their card.

    The card has the mean correlation with the log-odds on the training questions and on the held-out ones, and for the
    latter also that of equal weights. Questions with fewer than two sources, and those to which the model writes no
    answer, or has no room for one, are left out and counted. A killed run resumes after its last question when started
    again.

    Raises InputError for too few questions, UnsupportedError for a model whose attention cannot be read.
    """
    call, chosen = TrainingCall.now(command), rows[: settings.questions]
    if len(chosen) <= settings.held_out:
        raise InputError(
            f"{len(chosen)} questions, of which the last {settings.held_out} are held out, leave none for training: "
            "give more questions, or hold out fewer (questions, held_out)."
        )
    model = standing_for(writer)
    model.ask(AnswerAttention)
    identity = {
        **identity_of(model),
        DATA: digest_of([asdict(row) for row in chosen]),
        SETTINGS: digest_of(determining(settings)),
    }
    with training_in(out, AT2, identity):
        collected = _collected(writer, chosen, out / JOURNAL, settings)
        weights, provenance = _learned(collected, settings)
        about = {"data": {"name": data, "questions": len(chosen), "left_out": collected.count([])}}
        card = card_of(writer, weights, about | provenance | run_notes(call))
        write(out, card)
        disk.remove(out / JOURNAL)
    return card


def _learned(collected: Sequence[list[Ablated]], settings: At2Settings) -> tuple[Tensor, dict[str, Any]]:
    """The weights, and their entries in the card. Raises InputError."""
    border = len(collected) - settings.held_out
    learned, held_out = list(chain(*collected[:border])), list(chain(*collected[border:]))
    if not learned or not held_out:
        raise InputError(
            f"the model answers too few questions with at least {FEWEST} sources: {len(learned)} statements for "
            f"training and {len(held_out)} for evaluation. Give more such questions, or their answers."
        )
    weights = learned_weights(learned, settings.steps, settings.learning_rate)
    return weights, {
        "settings": determining(settings),
        "statements": {"learned": len(learned), "held_out": len(held_out)},
        "correlation": _correlated(weights, learned, held_out),
    }


def _collected(writer: Writer, rows: Sequence[QuestionRow], path: Path, settings: At2Settings) -> list[list[Ablated]]:
    """The statements of each question's answer; those of the journal are not computed again."""
    journal = RecordStore(path)
    collected = {record["question"]: _read(record) for record in journal.read().records}
    with progress_bar("ablations", len(rows), settings.progress, len(collected)) as advance:
        for number in range(len(rows)):
            if number in collected:
                continue
            rng = np.random.default_rng([settings.seed, number])
            statements = _ablated(writer, rows[number], settings.ablations, rng)
            record = {"question": number, "statements": [_written(one) for one in statements]}
            journal.append([record])
            # Read back from the journal, so that a resumed training learns from the same numbers.
            collected[number] = _read(record)
            advance(1)
    return [collected[number] for number in range(len(rows))]


def _ablated(writer: Writer, row: QuestionRow, ablations: int, rng: np.random.Generator) -> list[Ablated]:
    """The statements of one answer under random removals; none if the model can write no answer.

    None either for fewer than two sources: with a single one, every weighting correlates equally with the removals.
    """
    if row.sources is not None and len(row.sources) < FEWEST:
        return []
    try:
        answers = answers_of(writer, [row])
    except InputError:
        if row.answer is not None:
            raise
        return []
    [answered], model = answers.answers, answers.of(writer)
    if len(answered.source.sources) < FEWEST:
        return []
    spans: list[SingleTarget] = [*answered.statements]
    encoding = model.choosing.settled(model.encode([answered.texts] * len(spans), PART), spans).encoding
    keeps = torch.from_numpy(rng.random((ablations, len(answered.source.sources))) < KEEP)
    logits = model.masked_logits(encoding, [keeps] * len(spans), "delete")
    attention = model.ask(AnswerAttention).answer_attention(encoding)
    # The first column is for tokens that belong to no source.
    owners = torch.nn.functional.one_hot(encoding.unit_ids[0] + 1, keeps.shape[1] + 1)[:, 1:].double()
    return [
        Ablated(torch.einsum("lht,ts->slh", heads, owners), keeps, (pair[:, 0] - pair[:, 1]).double())
        for heads, pair in zip(attention, logits, strict=True)
    ]


def _written(statement: Ablated) -> dict[str, Any]:
    return {
        "attention": [
            [[round(share, 7) for share in row] for row in layers] for layers in statement.attention.tolist()
        ],
        "keeps": statement.keeps.int().tolist(),
        "log_odds": statement.log_odds.tolist(),
    }


def _read(record: dict[str, Any]) -> list[Ablated]:
    return [
        Ablated(
            torch.tensor(one["attention"], dtype=torch.float64),
            torch.tensor(one["keeps"], dtype=torch.bool),
            torch.tensor(one["log_odds"], dtype=torch.float64),
        )
        for one in record["statements"]
    ]


def _correlated(weights: Tensor, learned: Sequence[Ablated], held_out: Sequence[Ablated]) -> dict[str, float]:
    """Mean correlations with the effects of removals."""
    equal = torch.full_like(weights, 1 / len(weights))
    means = {
        "learned": correlations(weights, learned),
        "held_out": correlations(weights, held_out),
        "held_out_equal_weights": correlations(equal, held_out),
    }
    return {name: round(float(values.mean()), 4) for name, values in means.items()}
