from itertools import pairwise
from typing import get_args

import pytest
import torch

from raison.core.capabilities.step_logits import StepLogits
from raison.core.errors import UnknownNameError
from raison.methods.sp_pi import SpPi, Start
from tests.toys import TEXTS, TOYS, Copy, Linear, game_problem, generators, make_problem


def value(problem, text, kept):
    """The positive logit of one text when only the first units are kept, each asked for alone."""
    single = problem.encoding.select([text])
    keep = torch.arange(problem.encoding.unit_counts[text]) < kept
    return float(problem.model.masked_logits(single, [keep[None]], problem.removal)[0][0, 1])


@pytest.mark.parametrize("removal", ["mask", "delete"])
@pytest.mark.parametrize("toy", TOYS)
def test_scores_are_differences_of_beginnings(toy, removal):
    """Equation 7: the toys' intermediate predictions are exactly those of the beginning with the rest removed."""
    problem = make_problem(toy(), TEXTS, removal=removal)
    scores = SpPi().attribute(problem, generators(len(TEXTS)))
    for text, count in enumerate(problem.encoding.unit_counts):
        values = [value(problem, text, kept) for kept in range(count + 1)]
        expected = [after - before for before, after in pairwise(values)]
        assert scores[text, :count].tolist() == pytest.approx(expected, abs=1e-12)
        assert torch.all(scores[text, count:] == 0)
        assert problem.ledger.notes[text]["start"] == pytest.approx(values[0])
    assert problem.ledger.evaluations == [2] * len(TEXTS)


# `Copy` reads the token before the last, which a single leading token does not have.
@pytest.mark.parametrize("of", ["logit", "probability"])
@pytest.mark.parametrize(
    ("toy", "start"), [(toy, start) for toy in TOYS for start in get_args(Start) if (toy, start) != (Copy, "prior")]
)
def test_local_accuracy(toy, start, of):
    """Proposition 1, whatever p_0 is."""
    problem = make_problem(toy(), TEXTS, of=of)
    scores = SpPi(start=start).attribute(problem, generators(len(TEXTS)))
    full = torch.cat(problem.values([torch.ones(1, n, dtype=torch.bool) for n in problem.encoding.unit_counts]))
    starts = torch.tensor([notes["start"] for notes in problem.ledger.notes], dtype=torch.float64)
    torch.testing.assert_close(scores.sum(1), full - starts)
    if start == "prior":
        torch.testing.assert_close(
            starts,
            problem.target.scalar(problem.model.ask(StepLogits).start_logits(problem.encoding)),
            check_dtype=False,
        )


def test_only_the_first_score_depends_on_the_start():
    removed, prior = (
        SpPi(start=start).attribute(make_problem(Linear(), TEXTS), generators(len(TEXTS)))
        for start in ("removed", "prior")
    )
    assert torch.equal(removed[:, 1:], prior[:, 1:])
    assert torch.all(removed[:, 0] != prior[:, 0])


def test_order_decides_who_gets_a_shared_effect():
    # A game that two units win together or alone: the first takes all.
    problem = game_problem(torch.tensor([0.0, 1.0, 1.0, 1.0], dtype=torch.float64).numpy())
    assert SpPi().attribute(problem, generators(1)).tolist() == [[1.0, 0.0]]


def test_refuses_an_unknown_start():
    with pytest.raises(UnknownNameError, match="start of sp_pi.*Did you mean 'prior'"):
        SpPi(start="priors")
