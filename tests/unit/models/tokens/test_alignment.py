"""Tokens of one tokenizer against units of another."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from raison.core.inputs.encoding import Encoding
from raison.core.inputs.unit import Unit
from raison.models.tokens.alignment import Alignment, align
from raison.models.tokens.encoder import TextEncoder
from tests.tokenizers import TOKENIZERS


def encode(name: str, texts: list, unit: str = "token") -> Encoding:
    return TextEncoder(TOKENIZERS[name](), None).encode(texts, unit, False)


def units_of(text: str, *spans: tuple[int, int]) -> tuple[Unit, ...]:
    return tuple(Unit(start, end, text[start:end]) for start, end in spans)


def token_texts(encoding: Encoding, row: int = 0) -> list[str]:
    return [unit.text for unit in encoding.units[row]]


def numbered(encoding: Encoding) -> Tensor:
    """Another score at every position, special tokens included."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(encoding.input_ids.shape, generator=generator, dtype=torch.float64)


def test_a_token_s_score_is_copied_to_the_units_that_it_is_split_into() -> None:
    tokens = encode("bert", ["the plot"])
    assert token_texts(tokens)[0] == "the"
    scores = numbered(tokens)
    units = units_of("the plot", (0, 1), (1, 3))
    for merge in ("max", "mean"):
        found = align(tokens, [units]).merged(scores, merge)
        assert found[0].tolist() == [scores[0, 1].item()] * 2


def test_merged_tokens_have_their_greatest_score_or_their_mean() -> None:
    text = "a brilliant smithy"
    tokens = encode("bert", [text])
    scores = numbered(tokens)
    own = [n + 1 for n, unit in enumerate(tokens.units[0]) if unit.start >= 12]
    assert len(own) > 1
    found = align(tokens, [units_of(text, (12, 18))])
    assert found.merged(scores, "max")[0].tolist() == [max(scores[0, n].item() for n in own)]
    assert found.merged(scores, "mean")[0].item() == pytest.approx(sum(scores[0, n].item() for n in own) / len(own))


def test_both_parts_of_a_pair_are_aligned_with_their_own() -> None:
    """Characters are counted from the beginning of each part: the same numbers mean other tokens."""
    texts = [("the plot", "the film is dull")]
    tokens = encode("bert", texts)
    units = encode("roberta", texts, "word").units[0]
    scores = numbered(tokens)
    found = align(tokens, [units]).merged(scores, "max")[0]
    assert {unit.segment for unit in units} == {0, 1}
    for unit, score in zip(units, found.tolist(), strict=True):
        same = [
            n
            for n, number in enumerate(tokens.unit_ids[0].tolist())
            if number >= 0
            and tokens.units[0][number].segment == unit.segment
            and tokens.units[0][number].start < unit.end
            and unit.start < tokens.units[0][number].end
        ]
        assert score == max(scores[0, n].item() for n in same)
    assert len(set(found.tolist())) == len(units)


def test_a_unit_without_a_token_has_zero_and_no_gradient() -> None:
    tokens = encode("bert", ["the plot", "dull"])
    scores = numbered(tokens).requires_grad_()
    beyond = units_of("the plot and more", (0, 3), (9, 12))
    for merge in ("max", "mean"):
        found = align(tokens, [beyond, units_of("dull", (0, 4))]).merged(scores, merge)
        assert found[0, 0] > 0
        assert found[0, 1] == found[1, 1] == 0
        (gradient,) = torch.autograd.grad(found.sum(), scores)
        assert torch.isfinite(gradient).all()
        assert not gradient[:, 0].any(), "no unit has a special token"
        assert gradient.sum().item() == pytest.approx(2)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_character_of_several_tokens_is_merged_from_all_of_them(name: str) -> None:
    text = "so 😀 much"
    tokens = encode(name, [text])
    scores = numbered(tokens)
    (number,) = [n for n, unit in enumerate(tokens.units[0]) if "😀" in unit.text]
    places = [n for n, owner in enumerate(tokens.unit_ids[0].tolist()) if owner == number]
    assert len(places) > 1
    found = align(tokens, [units_of(text, (3, 4), (5, 9))])
    assert found.merged(scores, "max")[0, 0].item() == max(scores[0, n].item() for n in places)
    expected = sum(scores[0, n].item() for n in places) / len(places)
    assert found.merged(scores, "mean")[0, 0].item() == pytest.approx(expected)


def test_the_same_tokenizer_gives_each_token_its_own_score() -> None:
    texts = ["the plot is slow", "a brilliant zebra , isn't it?"]
    tokens = encode("bert", texts)
    scores = numbered(tokens)
    found = align(tokens, tokens.units).merged(scores, "max")
    for row, count in enumerate(tokens.unit_counts):
        assert torch.equal(found[row, :count], scores[row, 1 : count + 1])
        assert not found[row, count:].any()


def test_some_of_the_texts_have_the_scores_that_they_have_among_all() -> None:
    texts = ["the plot is slow", "dull", "a brilliant zebra"]
    tokens = encode("roberta", texts)
    scores, units = numbered(tokens), encode("bert", texts, "word").units
    whole = align(tokens, units)
    part = whole.select([2, 1], 3)
    expected = whole.merged(scores, "max")[[2, 1], :3]
    assert torch.equal(part.merged(scores[[2, 1]], "max"), expected)


def literal(alignment_of: tuple[Encoding, tuple], scores: Tensor, merge: str) -> list[list[float]]:
    """A double loop over units and positions, with the tokenizer's own characters."""
    tokens, units = alignment_of
    rows = []
    for row, own in enumerate(units):
        line = []
        for unit in own:
            values = []
            for position, number in enumerate(tokens.unit_ids[row].tolist()):
                if number == -1:
                    continue
                token = tokens.units[row][number]
                shared = set(range(token.start, token.end)) & set(range(unit.start, unit.end))
                if shared and token.segment == unit.segment:
                    values.append(scores[row, position].item())
            line.append(0.0 if not values else max(values) if merge == "max" else sum(values) / len(values))
        rows.append(line)
    return rows


WORDS = st.sampled_from(["the", "plot", "brilliant", "zebra", "isn't", "😀", "crème", "1,000", "海", "...", "\n", "  "])
SENTENCES = st.lists(WORDS, min_size=1, max_size=9).map(" ".join).filter(lambda text: text.strip() != "")
NAMES = ("bert", "bert_uncased", "roberta", "gpt2", "llama", "unigram")


@settings(max_examples=60)
@given(
    st.lists(SENTENCES, min_size=1, max_size=3),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.sampled_from(["token", "word", "sentence"]),
    st.sampled_from(["max", "mean"]),
)
def test_equals_a_loop_over_units_and_tokens(texts: list[str], reader: str, explained: str, unit: str, merge: str):
    tokens, units = encode(reader, texts), encode(explained, texts, unit).units
    scores = numbered(tokens)
    found = align(tokens, units).merged(scores, merge)
    for row, expected in enumerate(literal((tokens, units), scores, merge)):
        assert found[row, : len(expected)].tolist() == pytest.approx(expected)
        assert not found[row, len(expected) :].any()


def test_no_token_at_all() -> None:
    empty = Alignment(torch.full((1, 2, 1), -1))
    assert empty.merged(torch.rand(1, 4), "max").tolist() == [[0, 0]]
    assert empty.merged(torch.rand(1, 4), "mean").tolist() == [[0, 0]]
