"""The only caller of methods: check, run, sum to units, add provenance."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from raison._version import __version__
from raison.core.encoding import Encoding
from raison.core.errors import InputError, NonFiniteError, UnsupportedError
from raison.core.explanation import Explanation
from raison.core.method import Method, Property, Rngs
from raison.core.model import LanguageModel, Shift
from raison.core.problem import Evaluations, Ledger, Problem
from raison.core.registry import name_of
from raison.core.target import Target, TargetSpec, probabilities, resolve_target
from raison.core.unit import Granularity, Text, check_unit
from raison.methods import CATALOGUE

BATCH = 32
"""Texts explained together: enough to fill batches, few enough that an interruption loses little."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is explained, whatever the method. `removal` None is the model's default: mask, else unk, else pad."""

    unit: Granularity = "word"
    target: TargetSpec = None
    of: str = "probability"
    removal: str | None = None
    seed: int = 0
    truncate: bool = False

    def __post_init__(self) -> None:
        check_unit(self.unit)


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts encoded once, with the predictions that every method and metric shares."""

    model: LanguageModel
    settings: Settings
    encoding: Encoding
    removal: str
    target: Target
    full: Tensor
    """Logits of the unperturbed texts, (batch, classes)."""
    evaluations: Evaluations = field(default_factory=Evaluations)


def prepare(model: LanguageModel, texts: Sequence[Text], settings: Settings) -> Batch:
    """Tokenize, predict once and settle the target."""
    if not isinstance(model, LanguageModel):
        raise InputError(
            f"the model is a {type(model).__name__}: make it ready first with raison.load(name) or "
            "raison.load(model, tokenizer)."
        )
    encoding = model.encode(texts, settings.unit, settings.truncate)
    removal = settings.removal if settings.removal is not None else model.removals[0]
    evaluations = Evaluations()
    whole = [torch.ones(1, count, dtype=torch.bool) for count in encoding.unit_counts]
    logits = model.masked_logits(encoding, whole, removal)
    for text, row in enumerate(logits):
        evaluations.logits[evaluations.key(text, removal, whole[text][0].numpy().tobytes())] = row[0]
    full = torch.cat(logits)
    target = resolve_target(settings.target, settings.of, full, model.classes, model.multi_label)
    return Batch(model, settings, encoding, removal, target, full, evaluations)


def run(batch: Batch, method: Method) -> list[Explanation]:
    """One method on one batch of texts."""
    problem, started = _start(batch, method)
    scores = unit_scores(batch, method, method.attribute(problem, _rngs(batch, method)))
    seconds = (time.perf_counter() - started) / len(batch.encoding)
    return _explanations(batch, method, scores, problem.ledger, seconds)


def run_candidates(batch: Batch, method: Method) -> list[list[Explanation]]:
    """Every map that the method offers: one list of explanations of all texts per map.

    Each explanation states the cost of all maps together, for that is what a choice among them takes.
    """
    problem, started = _start(batch, method)
    maps = [unit_scores(batch, method, scores) for scores in method.candidates(problem, _rngs(batch, method))]
    seconds = (time.perf_counter() - started) / len(batch.encoding)
    return [_explanations(batch, method, scores, problem.ledger, seconds) for scores in maps]


def shifted_scores(batch: Batch, method: Method, shift: Shift) -> list[np.ndarray]:
    """The method's scores of each text's units, with the same draws, on the model with shifted embeddings."""
    with batch.model.shifted(shift):
        # What was evaluated before belongs to the model as it was.
        problem = _problem(replace(batch, evaluations=Evaluations()))
        scores = unit_scores(batch, method, method.attribute(problem, _rngs(batch, method)))
    return [scores[text, :count].numpy() for text, count in enumerate(batch.encoding.unit_counts)]


def unit_scores(batch: Batch, method: Method, scores: Tensor) -> Tensor:
    """What a method returned as (batch, units) in double precision. Raises NonFiniteError."""
    if Property.TOKENWISE in method.properties:
        scores = batch.encoding.sum_to_units(scores.detach())
    scores = scores.detach().double().cpu()
    _check_scores(scores, batch, method)
    return scores


def check(model: LanguageModel, method: Method) -> None:
    """UnsupportedError, with every missing capability, unless the model can do what the method needs."""
    missing = sorted(method.needs - model.capabilities)
    if missing:
        able = [name for name in CATALOGUE.names if CATALOGUE.get(name).needs <= model.capabilities]
        raise UnsupportedError(
            f"{name_of(method)} does not work on {model.name}",
            [f"the model lacks the capability '{capability}'" for capability in missing],
            f"These methods work: {', '.join(able)}.",
        )


def _start(batch: Batch, method: Method) -> tuple[Problem, float]:
    check(batch.model, method)
    return _problem(batch), time.perf_counter()


def _problem(batch: Batch) -> Problem:
    ledger = Ledger.empty(len(batch.encoding))
    return Problem(batch.model, batch.encoding, batch.target, batch.removal, ledger, batch.evaluations)


def _rngs(batch: Batch, method: Method) -> Rngs:
    """A generator per text that depends on the seed, the method and the text, and on nothing else."""

    def rng(text: Text) -> np.random.Generator:
        digest = hashlib.blake2b(repr((batch.settings.seed, name_of(method), text)).encode(), digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "little"))

    return [rng(text) for text in batch.encoding.texts]


def _check_scores(scores: Tensor, batch: Batch, method: Method) -> None:
    for text, count in enumerate(batch.encoding.unit_counts):
        if not torch.isfinite(scores[text, :count]).all():
            raise NonFiniteError(
                f"{name_of(method)} gave NaN or infinite scores on {str(batch.encoding.texts[text])!r:.80}: "
                "load the model in float32 (dtype='float32'), or explain of='logit' where the probability is exactly 1."
            )


def _explanations(batch: Batch, method: Method, scores: Tensor, ledger: Ledger, seconds: float) -> list[Explanation]:
    encoding, classes = batch.encoding, batch.model.classes
    ends = _problem(batch).values([torch.tensor([[True], [False]]).expand(2, count) for count in encoding.unit_counts])
    shares = probabilities(batch.full.double(), batch.model.multi_label)
    against = batch.target.against
    return [
        Explanation(
            text=encoding.texts[i],
            unit=encoding.unit,
            units=encoding.units[i],
            scores=tuple(scores[i, :count].tolist()),
            classes=classes,
            probabilities=tuple(shares[i].tolist()),
            target=classes[int(batch.target.index[i])],
            against=None if against is None else classes[int(against[i])],
            of=batch.target.of,
            value_full=ends[i][0].item(),
            value_empty=ends[i][1].item(),
            method=name_of(method),
            config=asdict(method),
            model=batch.model.name,
            removal=batch.removal,
            seed=batch.settings.seed,
            evaluations=ledger.evaluations[i],
            gradients=ledger.gradients[i],
            seconds=seconds,
            truncated=encoding.truncated[i],
            notes=ledger.notes[i],
            version=__version__,
        )
        for i, count in enumerate(encoding.unit_counts)
    ]
