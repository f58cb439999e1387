import pytest
import torch

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.passes import Passes
from raison.core.errors import UnknownNameError
from raison.methods.attention_last import AttentionLast
from tests.toys import TEXTS, Linear, generators, make_problem


class MeanPooled(Linear):
    """Predicts from the mean of all tokens."""

    def prediction_rows(self, encoding):
        mask = encoding.attention_mask.double()
        return mask / mask.sum(1, keepdim=True)


class BrokenPadding(Linear):
    """Attention of padding is not a number, as where a window holds nothing but padding."""

    def logits(self, encoding, embeds=None):
        found = super().logits(encoding, embeds)
        for tap in self._taps:
            for attention in tap.probabilities.values():
                attention.transpose(1, 2)[~encoding.attention_mask] = torch.nan
        return found


def by_loops(model, encoding, queries):
    """The mean over heads of the last layer's rows, one text without padding."""
    with model.ask(ReadableAttention).tap() as tap:
        model.ask(Passes).logits(encoding)
    tokens = encoding.lengths[0]
    heads = tap.probabilities[1][0].tolist()
    share = (
        model.ask(ReadableAttention).prediction_rows(encoding)[0].tolist()
        if queries == "prediction"
        else [1 / tokens] * tokens
    )
    return [
        sum(share[query] * sum(head[query][key] for head in heads) / len(heads) for query in range(tokens))
        for key in range(tokens)
    ]


@pytest.mark.parametrize("model", [Linear(), MeanPooled(), BrokenPadding()])
@pytest.mark.parametrize("queries", ["all", "prediction"])
def test_equals_loops_and_padding_does_not_leak(model, queries):
    problem = make_problem(model, TEXTS)
    scores = AttentionLast(queries=queries).attribute(problem, generators(len(TEXTS)))
    for text, length in enumerate(problem.encoding.lengths):
        expected = by_loops(model, problem.encoding.select([text]), queries)
        assert scores[text, :length].tolist() == pytest.approx(expected, abs=1e-12)
        assert float(scores[text].sum()) == pytest.approx(1)
        assert torch.all(scores[text, length:] == 0)
    assert problem.ledger.evaluations == [1] * len(TEXTS)
    assert AttentionLast().cost(9).forwards == 1


def test_default_rows():
    default, named, other = (
        method.attribute(make_problem(Linear(), TEXTS), generators(len(TEXTS)))
        for method in (AttentionLast(), AttentionLast(queries="prediction"), AttentionLast(queries="all"))
    )
    assert torch.equal(default, named)
    assert not torch.allclose(default, other)


def test_refuses_unknown_rows():
    with pytest.raises(UnknownNameError, match="Did you mean 'prediction'"):
        AttentionLast(queries="predictions")
