"""The only caller of methods: check, run, sum to units, add provenance."""

import copy
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from raison._version import __version__
from raison.core.capabilities.embeddings import Shift, WordEmbeddings
from raison.core.capabilities.reduced_precision import ReducedPrecision
from raison.core.capabilities.token_predictions import TokenPredictions
from raison.core.capability import Capability
from raison.core.errors import AnswerError, DataError, NonFiniteError, RaisonError, UnsupportedError
from raison.core.inputs.special_names import noted
from raison.core.method import Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.note_names import EACH_FROM, EXTENDED, PRECISION, UNKNOWN_TOKENS, UNSTEADY
from raison.core.problem import Attributed, Evaluations, Ledger, Problem, StandIn
from raison.core.registry import label_of, name_of
from raison.core.results.explanation import Explanation
from raison.core.results.notes import check_notes
from raison.core.targets.answer import ExplainedAnswer
from raison.core.targets.target import probabilities
from raison.core.unchanged import unchanged
from raison.explaining.batch import Batch, Maps
from raison.explaining.returned_scores import checked
from raison.explaining.server_noise import noise_notes
from raison.explaining.token_by_token import by_tokens, looks_inside
from raison.methods import CATALOGUE
from raison.models.passes.batching import naming_the_longest
from raison.models.passes.precision import rank_agreement
from raison.models.stack.eval_mode import own_precision


def run(batch: Batch, method: Method) -> list[Explanation]:
    """One method on one batch of texts.

    Made from the method's candidates if the batch has them; by `Method.unselected` the result is the same. The stated
    cost is that of the method alone, wherever its candidates came from.
    """
    return _explanations(batch, method, _attributed(batch, method))[0]


def run_candidates(batch: Batch, method: Method) -> list[list[Explanation]]:
    """Every map that the method offers: one list of explanations of all texts per map.

    Each of the method's parts is computed once per batch and seed. Each explanation states the cost of all maps
    together, which is the cost of a choice among them.
    """
    return _explanations(batch, method, _candidates(batch, method))


def shifted_scores(batch: Batch, method: Method, shift: Shift, evaluations: Evaluations) -> list[np.ndarray]:
    """The method's scores of each text's units, with the same draws, on the model with shifted embeddings.

    `evaluations` are those of these texts under this shift: what was computed before belongs to the model without it.
    """
    with batch.model.ask(WordEmbeddings).shifted(shift):
        return scores_of(replace(batch.on(batch.model), evaluations=evaluations), method)


def scores_of(batch: Batch, method: Method) -> list[np.ndarray]:
    """The method's scores of each text's units, without an explanation around them."""
    maps = _attributed(batch, method)
    scores = unit_scores(batch, method, maps.scores[0], _ran(method, maps.ledger))
    return [scores[text, :count].numpy() for text, count in enumerate(batch.encoding.unit_counts)]


def explanations_of(batch: Batch, method: Method, scores: Tensor) -> list[Explanation]:
    """Explanations from scores that were computed elsewhere, (batch, scored); they state no cost."""
    return _explanations(batch, method, Maps(scores[None], Ledger.empty(len(batch.encoding)), 0.0))[0]


def unit_scores(batch: Batch, method: Method, scores: Tensor, ran: Sequence[StandIn]) -> Tensor:
    """What a method returned as (batch, units) in double precision; `ran` is what ran for each text.

    Raises NonFiniteError, and AnswerError for a score below zero of a method without such scores.
    """
    if Property.TOKENWISE in method.properties:
        scores = batch.encoding.sum_to_units(scores)
    scores = scores.double()
    _check_scores(scores, batch, ran)
    return scores


def check(model: LanguageModel, method: Method) -> None:
    """Raise UnsupportedError, with every missing capability, unless the model can do what the method needs.

    Further requirements of a method's settings raise a RaisonError of their own.
    """
    if looks_inside(model, method):
        model = model.ask(TokenPredictions).reader
    if reasons := method.lacking(model):
        able = [name for name in CATALOGUE.names if not unfit_of(model, name)]
        raise UnsupportedError(
            f"{name_of(method)} does not work on {model.name}",
            reasons,
            f"These methods work: {', '.join(able)}.",
        )
    method.check(model)


def unfit(model: LanguageModel, method: Method, disproved: Collection[type[Capability]] = frozenset()) -> list[str]:
    """Why a method does not work on a model: nothing if it does. `disproved` are capabilities that do not work."""
    if reasons := method.lacking(model, disproved):
        return reasons
    try:
        method.check(model)
    except RaisonError as error:
        return [str(error)]
    return []


def unfit_of(model: LanguageModel, name: str, disproved: Collection[type[Capability]] = frozenset()) -> list[str]:
    """The same for a name of the catalogue; a file that cannot be used is a reason."""
    try:
        method = CATALOGUE.create(name)
    except RaisonError as error:
        return [str(error)]
    return unfit(model, method, disproved)


def _attributed(batch: Batch, method: Method) -> Maps:
    """The method's one map when nothing is selected.

    A method of several parts is always made from these: each draws as if alone, so that sharing changes no number.
    """
    keys = [(label_of(part), batch.settings.seed) for part in method.parts]
    if len(keys) == 1 and keys[0] not in batch.maps:
        return _computed(batch, method, lambda problem, rngs: _kept(problem, rngs, method)[None])
    maps = _candidates(batch, method)
    return replace(maps, scores=method.unselected(maps.scores)[None])


def _kept(problem: Problem, rngs: Rngs, method: Method) -> Tensor:
    scores = _returned(problem, rngs, method, maps=False)
    key = (label_of(method), problem.seed)
    # A copy: what is counted from here on, such as the check of a lower precision, is not part of the method's cost.
    problem.attributed[key] = Attributed(scores, copy.deepcopy(problem.ledger), frozenset(problem.counted))
    return scores


def _offered(method: Method, problem: Problem, rngs: Rngs) -> Tensor:
    if Property.CANDIDATES in method.properties:
        return _returned(problem, rngs, method, maps=True)
    return _returned(problem, rngs, method, maps=False)[None]


def _returned(problem: Problem, rngs: Rngs, method: Method, maps: bool) -> Tensor:
    """The method's scores, or all of its maps. Raises AnswerError for others, and for a method that changed its
    input."""
    function = method.candidates if maps else method.attribute
    with unchanged(problem, name_of(method)):
        scores = function(problem, rngs)
    return checked(scores, problem, method, maps)


def _candidates(batch: Batch, method: Method) -> Maps:
    """All maps that the method offers: those of its parts, one part after another, each computed once."""
    parts = []
    for part in method.parts:
        key = (label_of(part), batch.settings.seed)
        if key not in batch.maps:
            batch.maps[key] = _computed(batch, part, partial(_offered, part))
        parts.append(batch.maps[key])
    return parts[0] if len(parts) == 1 else _joined(parts)


def _computed(batch: Batch, method: Method, function: Callable[[Problem, Rngs], Tensor]) -> Maps:
    check(batch.model, method)
    problem, started = _problem(batch), time.perf_counter()
    inside = looks_inside(batch.model, method)
    # A caller's inference mode would leave no graph for a backward pass, and its autocast change sums over layers.
    with naming_the_longest(batch.encoding), torch.inference_mode(False), own_precision():
        # A device has finished once its numbers have arrived.
        if inside:
            scores = by_tokens(problem, method, function)
        else:
            scores = function(problem, problem.generators(name_of(method)))
    findings = rank_agreement(problem)
    if findings is not None:
        problem.note(PRECISION, findings)
    return Maps(scores, problem.ledger, time.perf_counter() - started)


def _joined(parts: Sequence[Maps]) -> Maps:
    """Several parts as one, with their total cost. If the parts' notes differ, a note becomes the list of them."""
    ledgers = [part.ledger for part in parts]
    notes: list[dict[str, object]] = []
    for of_parts in zip(*(ledger.notes for ledger in ledgers), strict=True):
        names = dict.fromkeys(name for note in of_parts for name in note)
        said_by_all = {name: [note[name] for note in of_parts if name in note] for name in names}
        notes.append({name: note[0] if note == [note[0]] * len(parts) else note for name, note in said_by_all.items()})
    ledger = Ledger(
        evaluations=[sum(counts) for counts in zip(*(ledger.evaluations for ledger in ledgers), strict=True)],
        gradients=[sum(counts) for counts in zip(*(ledger.gradients for ledger in ledgers), strict=True)],
        notes=notes,
    )
    return Maps(torch.cat([part.scores for part in parts]), ledger, sum(part.seconds for part in parts))


def _problem(batch: Batch) -> Problem:
    return Problem(
        batch.model,
        batch.encoding,
        batch.target,
        batch.removal,
        Ledger.empty(len(batch.encoding)),
        batch.evaluations,
        seed=batch.settings.seed,
        attributed=batch.attributed,
        reduced=None if batch.settings.precision == "float32" else lambda: batch.model.ask(ReducedPrecision).reduced(),
    )


def _ran(method: Method, ledger: Ledger) -> list[StandIn]:
    """For each text, the method that ran: the given one, or the one that stood in for it."""
    stated = StandIn(name_of(method), asdict(method), method.signed)
    return [ledger.stand_ins.get(text, stated) for text in range(len(ledger.notes))]


def _check_scores(scores: Tensor, batch: Batch, ran: Sequence[StandIn]) -> None:
    for text, count in enumerate(batch.encoding.unit_counts):
        own = scores[text, :count]
        if not torch.isfinite(own).all():
            raise NonFiniteError(
                f"{ran[text].method} gave NaN or infinite scores on {str(batch.encoding.texts[text])!r:.80}: load a "
                "model of 16 bits in float32 (dtype='float32'), and explain of='logit' where a probability is 0 or 1; "
                "anything else is a mistake of the method."
            )
        if not ran[text].signed and (own < 0).any():
            raise AnswerError(
                f"{ran[text].method} declares that no score is below zero (UNSIGNED), but gave {own.min():.3g} on "
                f"{str(batch.encoding.texts[text])!r:.80}: return magnitudes, or leave the property out if such a "
                "score speaks against the target."
            )


def _explanations(batch: Batch, method: Method, maps: Maps) -> list[list[Explanation]]:
    """For each map the explanations of all texts; what they share is made once."""
    ran = _ran(method, maps.ledger)
    blanks = _without_scores(batch, maps, ran)
    explained = []
    for scores in maps.scores:
        rows = unit_scores(batch, method, scores, ran).tolist()
        explained.append([replace(e, scores=tuple(row[: len(e.units)])) for e, row in zip(blanks, rows, strict=True)])
    return explained


def _without_scores(batch: Batch, maps: Maps, ran: Sequence[StandIn]) -> list[Explanation]:
    encoding, ledger = batch.encoding, maps.ledger
    named = batch.classes or (batch.model.classes,) * len(encoding)
    ends = _problem(batch).values([torch.tensor([[True], [False]]).expand(2, count) for count in encoding.unit_counts])
    served = _served(batch)
    shares, unknown = _shares(batch), encoding.unknown(batch.model.unknown_id)
    against = batch.target.against
    passes = [sum(counts) for counts in zip(ledger.evaluations, ledger.gradients, strict=True)]
    work = [max(1, count * units) for count, units in zip(passes, encoding.unit_counts, strict=True)]
    for notes, one, units in zip(ledger.notes, ran, encoding.units, strict=True):
        _check_notes(notes, one.method, len(units))
    return [
        Explanation(
            text=encoding.texts[i],
            unit=encoding.unit,
            units=encoding.units[i],
            scores=(),
            classes=named[i] if answer is None else (answer.text, *named[i][1:]),
            probabilities=shares[i],
            target=_target_name(named[i], int(batch.target.index[i]), answer),
            against=None if against is None else named[i][int(against[i])],
            of=batch.target.of,
            value_full=ends[i][0].item(),
            value_empty=ends[i][1].item(),
            method=ran[i].method,
            config=ran[i].config,
            model=batch.model.name,
            removal=batch.removal,
            seed=batch.settings.seed,
            evaluations=ledger.evaluations[i],
            gradients=ledger.gradients[i],
            seconds=maps.seconds * work[i] / sum(work),
            truncated=encoding.truncated[i],
            notes=ledger.notes[i]
            | ({UNKNOWN_TOKENS: unknown[i].to_note()} if unknown[i].units else {})
            | noted(encoding.texts[i], batch.model.special_names)
            | ({EXTENDED: list(batch.extended[i])} if batch.extended and batch.extended[i] else {})
            | ({} if batch.threshold is None else {EACH_FROM: batch.threshold})
            | ({UNSTEADY: batch.unsteady} if batch.unsteady else {})
            | served[i],
            version=__version__,
            answer=answer,
            signed=ran[i].signed,
            outputs=batch.model.outputs,
            place=batch.places[i] if batch.places else None,
        )
        for i, answer in enumerate(batch.answers or (None,) * len(encoding))
    ]


def _check_notes(notes: dict[str, object], method: str, units: int) -> None:
    """Raise AnswerError for a note that views and metrics could not read: its name has a type (core/note_names.py)."""
    try:
        check_notes({"notes": notes}, "an explanation", units)
    except DataError as error:
        found = str(error).removeprefix("not an explanation: the notes: ")
        raise AnswerError(
            f"{method} adds a note under a name that raison reads itself: {found} Use another name, or such a value."
        ) from None


def _served(batch: Batch) -> list[dict[str, object]]:
    """Notes on a server's answers to these texts, made once for all methods."""
    if not batch.served:
        batch.served.extend(noise_notes(_problem(batch)))
    return batch.served


def _shares(batch: Batch) -> list[tuple[float, ...]]:
    """Probabilities of the classes of each text; none where the model gives a number."""
    if batch.model.outputs == "number":
        return [()] * len(batch.encoding)
    return [tuple(row) for row in probabilities(batch.full.double(), batch.model.multi_label).tolist()]


def _target_name(classes: tuple[str, ...], index: int, answer: ExplainedAnswer | None) -> str:
    """The class; an answer that is not the model's own is named by its text, because it is no class of the model."""
    return answer.text if answer is not None and index == 0 and not answer.is_predicted else classes[index]
