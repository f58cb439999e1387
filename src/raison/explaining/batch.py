"""A batch: texts encoded once, with the predictions and maps that every method and metric shares."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from raison.core.errors import InputError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given, PartedText
from raison.core.inputs.unit import Unit
from raison.core.model import LanguageModel, asked_of, check_facts
from raison.core.problem import Attributed, Evaluations, KeepKey, Ledger
from raison.core.returned_logits import checked_logits
from raison.core.targets.answer import ExplainedAnswer
from raison.core.targets.choosing import Settled
from raison.core.targets.place import Place
from raison.core.targets.target import Target, resolve_target
from raison.explaining.settings import Settings
from raison.models.adapters.checks.determinism import unsteady
from raison.models.adapters.places import spans
from raison.models.passes.batching import naming_the_longest
from raison.text.named import extended

BATCH = 32
"""Texts explained together: enough to fill batches, few enough that an interruption loses little."""


@dataclass(frozen=True, slots=True)
class Maps:
    """Scores as a method returned them, and their cost."""

    scores: Tensor
    """(maps, batch, scored)."""
    ledger: Ledger
    seconds: float
    """The total over all texts."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts encoded once, with the predictions and maps that every method and metric shares."""

    model: LanguageModel
    settings: Settings
    encoding: Encoding
    removal: str
    target: Target
    full: Tensor
    """Logits of the unperturbed texts, (batch, classes)."""
    evaluations: Evaluations = field(default_factory=Evaluations)
    maps: dict[tuple[str, int], Maps] = field(default_factory=dict)
    """The computed candidates, by seed and the label of a method's part. Only for this target."""
    served: list[dict[str, object]] = field(default_factory=list)
    """Notes about a server's answers, one per text. Only for this target."""
    attributed: dict[tuple[str, int], Attributed] = field(default_factory=dict)
    """Results of complete methods by label and seed, for methods that combine others. Only for this target."""
    answers: tuple[ExplainedAnswer, ...] = ()
    """The explained answers, one per text, if the model answers questions."""
    places: tuple[Place, ...] = ()
    """The position of the explained prediction, one per text, if the model predicts at positions of the text."""
    classes: tuple[tuple[str, ...], ...] = ()
    """The names of the classes of each text there."""
    extended: tuple[tuple[int, ...], ...] = ()
    """Per text, the units with more characters than the caller's span, because tokens are not split."""
    threshold: float | None = None
    """The minimum probability of explained labels, if every label is explained."""
    unsteady: str | None = None
    """A note for a model whose answers differ between equal calls."""

    def seeded(self, seed: int) -> "Batch":
        """The same under another seed of random methods; computed results are shared."""
        return replace(self, settings=replace(self.settings, seed=seed))

    def towards(self, target: Target) -> "Batch":
        """The same texts with another target: what the model gave for them is shared, what methods made is not."""
        return replace(self.afresh(), target=target, served=[])

    def afresh(self) -> "Batch":
        """The same without what methods made."""
        return replace(self, maps={}, attributed={})

    def on(self, model: LanguageModel) -> "Batch":
        """The same texts and target on a changed copy of the model, for which nothing is known yet."""
        return replace(self.afresh(), model=model, evaluations=Evaluations(), served=[])

    def select(self, rows: Sequence[int]) -> "Batch":
        """Some of the texts, each as often as it is named, with what the model gave for them; methods made nothing."""
        known: dict[int, list[tuple[KeepKey, Tensor]]] = {row: [] for row in rows}
        for key, logits in self.evaluations.logits.items():
            if key.text in known:
                known[key.text].append((key, logits))
        given = {key._replace(text=row): logits for row, text in enumerate(rows) for key, logits in known[text]}
        return replace(
            self.afresh(),
            encoding=self.encoding.select(rows),
            full=self.full[list(rows)],
            target=self.target.rows(torch.tensor(rows)),
            evaluations=Evaluations(given),
            served=[],
            answers=tuple(self.answers[row] for row in rows) if self.answers else (),
            places=tuple(self.places[row] for row in rows) if self.places else (),
            classes=tuple(self.classes[row] for row in rows) if self.classes else (),
            extended=tuple(self.extended[row] for row in rows) if self.extended else (),
        )


def prepare(model: LanguageModel, texts: Sequence[Given], settings: Settings) -> Batch:
    """Tokenize, predict once and resolve the target. A question answering model needs two more passes.

    Raises InputError for a target that is a part of the context but not the model's own answer, because metrics judge
    only the model's own answers.
    """
    batch = prepare_stated(model, texts, settings)
    refuse_stated(model, batch.answers)
    return batch


def refuse_stated(model: LanguageModel, answers: Iterable[ExplainedAnswer]) -> None:
    """Raise InputError for an answer that is not the model's own."""
    for answer in answers:
        if not answer.is_predicted:
            raise InputError(
                f"the target {answer.text!r:.60} is not the answer of {model.name}, {answer.predicted.text!r:.60}: "
                "only the model's own answers can be evaluated and compared. Leave target out, or explain without "
                "select."
            )


def prepare_stated(model: LanguageModel, texts: Sequence[Given], settings: Settings) -> Batch:
    """The same, but answers other than the model's own are also allowed."""
    check_model(model)
    asked_of(model, settings.of)
    encode = model.encode if model.choosing is None else model.tokenized
    return prepare_encoded(model, texts, encode(texts, settings.unit, settings.truncate), settings)


def prepare_encoded(model: LanguageModel, texts: Sequence[Given], encoding: Encoding, settings: Settings) -> Batch:
    """The same for texts that were encoded before."""
    of, spec, predicted = asked_of(model, settings.of), settings.target, encoding.spans
    answers: tuple[ExplainedAnswer, ...] = ()
    settled: Settled | None = None
    if model.choosing is not None:
        settled = model.choosing.settled(encoding, spec)
        encoding, spec = settled.encoding, settled.index
    elif predicted is not None:
        encoding, spec = spans.settled(encoding, spec)
        answers = spans.explained(model, encoding, predicted)
    removal = settings.removal if settings.removal is not None else model.removals[0]
    model.check_removal(removal)
    evaluations = Evaluations()
    whole = encoding.whole
    with naming_the_longest(encoding):
        doubt = unsteady(model, encoding)
        logits = checked_logits(model, encoding, whole, removal)
    for text, row in enumerate(logits):
        evaluations.logits[KeepKey.of(text, removal, whole[text][0].numpy().tobytes())] = row[0]
    full = torch.cat(logits)
    target = resolve_target(spec, of, full, model.classes, model.multi_label)
    if settled is not None:
        target = _settled_target(target, settled)
    wider = tuple(_extended(text, units) for text, units in zip(texts, encoding.units, strict=True))
    return Batch(
        model, settings, encoding, removal, target, full, evaluations, answers=answers, unsteady=doubt, extended=wider,
        places=() if settled is None else settled.places, classes=() if settled is None else settled.classes,
    )  # fmt: skip


def _settled_target(target: Target, settled: Settled) -> Target:
    """The target with the class that it is settled against, if there is one."""
    if settled.against is not None:
        return replace(target, against=torch.tensor(settled.against))
    if target.of == "margin" and settled.runner_up is not None:
        return replace(target, against=torch.full_like(target.index, settled.runner_up))
    return target


def _extended(text: Given, units: Sequence[Unit]) -> tuple[int, ...]:
    return extended(text, units) if isinstance(text, PartedText) and not text.found else ()


def check_model(model: object) -> None:
    """Raise InputError unless it is a model from `raison.load`, or an adapter with all of its facts."""
    if not isinstance(model, LanguageModel):
        raise InputError(
            f"the model is a {type(model).__name__}: load it first with raison.load(name) or raison.load(model, "
            "tokenizer)."
        )
    check_facts(model)
