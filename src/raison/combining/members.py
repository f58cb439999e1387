"""Runs the methods that another method combines: on the same problem, or on some of its texts."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.method import Method, Property
from raison.core.problem import Attributed, Evaluations, KeepKey, Ledger, Problem
from raison.core.registry import label_of, name_of
from raison.core.unchanged import unchanged


def run_alone(problem: Problem, member: Method) -> Attributed:
    """The member's result when run alone; reused if it was computed before."""
    key = (label_of(member), problem.seed)
    if key not in problem.attributed:
        alone = replace(problem, ledger=Ledger.empty(len(problem.encoding)), counted=set())
        with unchanged(alone, name_of(member)):
            if len(member.parts) == 1:
                scores = member.attribute(alone, alone.generators(name_of(member)))
            else:
                # As in raison.explaining.attribution, each part draws as if alone.
                maps = [part.candidates(alone, alone.generators(name_of(part))) for part in member.parts]
                scores = member.unselected(torch.cat(maps))
        problem.attributed[key] = Attributed(scores.detach().cpu(), alone.ledger, frozenset(alone.counted))
    return problem.attributed[key]


def in_units(problem: Problem, member: Method, scores: Tensor) -> Float[Tensor, "batch units"]:
    """The member's scores, summed to units; zero past a text's own units."""
    encoding = problem.encoding
    if Property.TOKENWISE in member.properties:
        return encoding.sum_to_units(scores).double()
    counts = torch.tensor(encoding.unit_counts)
    width = int(counts.max())
    return scores[:, :width].double().masked_fill(torch.arange(width) >= counts[:, None], 0.0)


def some_texts(problem: Problem, texts: Sequence[int]) -> Problem:
    """The problem on some of its texts, with the evaluations of these; see `give_back`."""
    place = {text: row for row, text in enumerate(texts)}
    known = problem.evaluations
    return replace(
        problem,
        encoding=problem.encoding.select(texts),
        target=problem.target.rows(torch.as_tensor(texts)),
        ledger=Ledger.empty(len(texts)),
        evaluations=Evaluations(_moved(known.logits, place), _moved(known.reduced, place)),
        counted=set(),
        attributed={},
    )


def give_back(problem: Problem, texts: Sequence[int], part: Problem, attributed: Attributed) -> None:
    """Add to the whole problem the evaluations of `part`, made by `some_texts`, and a method's requests there."""
    place = dict(enumerate(texts))
    problem.evaluations.logits.update(_moved(part.evaluations.logits, place))
    problem.evaluations.reduced.update(_moved(part.evaluations.reduced, place))
    problem.counted.update(key._replace(text=place[key.text]) for key in attributed.counted)
    for row, text in enumerate(texts):
        problem.ledger.evaluations[text] += attributed.ledger.evaluations[row]
        problem.ledger.gradients[text] += attributed.ledger.gradients[row]


def _moved(known: dict[KeepKey, Tensor], place: dict[int, int]) -> dict[KeepKey, Tensor]:
    """The evaluations of the texts that have a new place, under it."""
    return {key._replace(text=place[key.text]): logits for key, logits in known.items() if key.text in place}
