import pytest
import torch

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.passes import Passes
from raison.methods.attention_rollout import AttentionRollout
from tests.toys import TEXTS, Linear, generators, make_problem


def rollout(model, encoding, residual, queries):
    """Abnar and Zuidema 2020, equation 1, by explicit loops over one text without padding."""
    with model.ask(ReadableAttention).tap() as tap:
        model.ask(Passes).logits(encoding)
    tokens = encoding.lengths[0]
    product = [[float(i == j) for j in range(tokens)] for i in range(tokens)]
    for layer in sorted(tap.probabilities):
        heads = tap.probabilities[layer][0].tolist()
        mixing = []
        for i in range(tokens):
            row = [sum(head[i][j] for head in heads) / len(heads) for j in range(tokens)]
            if residual:
                row = [0.5 * row[j] + 0.5 * (i == j) for j in range(tokens)]
            mixing.append([entry / sum(row) for entry in row])
        product = [
            [sum(mixing[i][k] * product[k][j] for k in range(tokens)) for j in range(tokens)] for i in range(tokens)
        ]
    rows = (
        [1 / tokens] * tokens
        if queries == "all"
        else model.ask(ReadableAttention).prediction_rows(encoding)[0].tolist()
    )
    return [sum(rows[i] * product[i][j] for i in range(tokens)) for j in range(tokens)]


class MeanPooled(Linear):
    """Predicts from the mean of all tokens."""

    def prediction_rows(self, encoding):
        mask = encoding.attention_mask.double()
        return mask / mask.sum(1, keepdim=True)


@pytest.mark.parametrize("model", [Linear(), MeanPooled()])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("queries", ["prediction", "all"])
def test_equals_loops_and_padding_does_not_leak(model, residual, queries):
    problem = make_problem(model, TEXTS)
    scores = AttentionRollout(residual=residual, queries=queries).attribute(problem, generators(len(TEXTS)))
    for text, length in enumerate(problem.encoding.lengths):
        expected = rollout(model, problem.encoding.select([text]), residual, queries)
        assert scores[text, :length].tolist() == pytest.approx(expected, abs=1e-12)
        assert float(scores[text].sum()) == pytest.approx(1)
        assert torch.all(scores[text, length:] == 0)
    assert problem.ledger.evaluations == [1] * len(TEXTS)
    assert AttentionRollout().cost(9).forwards == 1


class BrokenPadding(Linear):
    """Attention of padding is not a number, as where a window holds nothing but padding."""

    def logits(self, encoding, embeds=None):
        found = super().logits(encoding, embeds)
        for tap in self._taps:
            for attention in tap.probabilities.values():
                attention.transpose(1, 2)[~encoding.attention_mask] = torch.nan
        return found


def test_padding_may_hold_anything():
    scores, plain = (
        AttentionRollout().attribute(make_problem(model, TEXTS), generators(len(TEXTS)))
        for model in (BrokenPadding(), Linear())
    )
    assert torch.equal(scores, plain)
