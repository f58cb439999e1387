import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.errors import UnsupportedError
from raison.methods.value_zeroing import ValueZeroing
from raison.models.adapters.offered.zeroed_values import value_zeroing_distances
from raison.numerics.attention.context_mixing import shares
from raison.text.prompts import Prompt
from tests.attention_reference import READS, Literal, build_any, double_throughout, problem_of
from tests.tiny import build, build_language_model
from tests.toys import Linear, generators, make_problem

TEXTS = ("a dull plot , but good", "a quiet film")
STACKS = {
    "bert": "bert.encoder.layer",
    "roberta": "roberta.encoder.layer",
    "distilbert": "distilbert.transformer.layer",
    "gpt2": "transformer.h",
    "llama": "model.layers",
    "mistral": "model.layers",
    "modernbert": "model.layers",
    "modernbert mean": "model.layers",
}


def outputs(literal, stack, layer, run):
    """What one layer puts out in a pass."""
    caught = []
    module = literal.model.get_submodule(stack)[layer]

    def keep(_module, _args, output):
        caught.append(output[0] if isinstance(output, tuple) else output)

    handle = module.register_forward_hook(keep)
    try:
        with torch.no_grad():
            run()
    finally:
        handle.remove()
    return caught[0][0].numpy()


def cosine_distance(a, b):
    return 1 - float(a @ b) / float(np.sqrt(a @ a) * np.sqrt(b @ b))


def context_mixing(literal, stack, ids):
    """Mohebbi et al. 2023, section 3, one layer and one token at a time.

    A value vector of zero adds nothing to any position, which is what attention of zero to the token does.
    """
    matrices = []
    for layer, attention in enumerate(literal.attention(ids)):
        plain = outputs(literal, stack, layer, lambda: literal.logits(ids))
        matrix = np.zeros((len(ids), len(ids)))
        for j in range(len(ids)):
            without = attention.clone()
            without[:, :, j] = 0

            def run(layer=layer, without=without):
                literal.logits(ids, layer, without)

            changed = outputs(literal, stack, layer, run)
            matrix[:, j] = [cosine_distance(changed[i], plain[i]) for i in range(len(ids))]
        matrices.append(matrix / matrix.sum(1, keepdims=True))
    return matrices


def rolled(matrices, rows):
    joint = np.eye(len(rows))
    for matrix in matrices:
        joint = matrix @ joint
    return np.array(rows) @ joint


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", sorted(READS))
def test_equals_zeroing_one_token_at_a_time(name):
    with double_throughout():
        model, tokenizer = build_any(name)
        problem = problem_of(raison.load(model.double(), tokenizer), TEXTS)
        literal = Literal(model, READS[name])
        scores = ValueZeroing().attribute(problem, generators(len(TEXTS)))
        for text, length in enumerate(problem.encoding.lengths):
            matrices = context_mixing(literal, STACKS[name], problem.encoding.input_ids[text, :length])
            np.testing.assert_allclose(scores[text, :length], rolled(matrices, literal.shares(length)), atol=1e-9)
            assert float(scores[text].sum()) == pytest.approx(1)
            assert not scores[text, length:].any()
    lengths = problem.encoding.lengths
    assert problem.ledger.evaluations == [length + 1 for length in lengths]
    assert ValueZeroing().cost(lengths[0]).forwards == lengths[0] + 1


def test_behind_a_prompt_with_label_words_of_several_tokens():
    """The layers are those of the text's own pass, not of a label word's."""
    model, tokenizer = build_language_model("gpt2")
    prompt = Prompt(
        name="plot",
        task="Say how it was.",
        shot="Plot: {text}\nIt was{label}",
        labels={"good": " brilliant and good", "bad": " bad"},
    )
    with double_throughout():
        adapter = raison.load(model.double(), tokenizer, prompt=prompt)
        assert len(adapter.readout.branches) > 1
        problem = problem_of(adapter, TEXTS[1:])
        (ids,) = problem.encoding.input_ids
        (found,) = ValueZeroing().attribute(problem, generators(1))
        literal = Literal(model, "last", [0, 1])
        expected = rolled(context_mixing(literal, "transformer.h", ids), literal.shares(len(ids)))
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_small_batches_of_tokens_give_the_same(name):
    model, tokenizer = build_any(name)
    adapter = raison.load(model, tokenizer)
    encoding = adapter.encode([TEXTS[0]], "word")
    wide = list(value_zeroing_distances(adapter, encoding))
    adapter.budget.tokens = 2 * encoding.lengths[0]
    narrow = list(value_zeroing_distances(adapter, encoding))
    for one, other in zip(wide, narrow, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-9)


def test_layers_and_attention_are_counted_as_run():
    """Rows that enter each layer: one of the plain pass, and one per token."""
    model, tokenizer = build_any("bert")
    adapter = raison.load(model, tokenizer)
    tokens = adapter.encode([TEXTS[1]], "word").lengths[0]
    adapter.ask(ReadableAttention).prediction_rows(adapter.encode([TEXTS[1]], "word"))
    rows = [0] * 3
    handles = []
    for number, layer in enumerate(model.bert.encoder.layer):

        def count(_module, args, number=number):
            rows[number] += len(args[0])

        handles.append(layer.register_forward_pre_hook(count))
    raison_rows = list(value_zeroing_distances(adapter, adapter.encode([TEXTS[1]], "word")))
    for handle in handles:
        handle.remove()
    assert rows == [tokens + 1] * 3 == [tokens + 1] * len(raison_rows)


def test_labels_of_a_text_share_its_passes(monkeypatch):
    """The scores are the same for every target."""
    model = raison.load(*build("bert", ("joy", "grief", "fear"), "multi_label_classification"))
    alone = raison.explain(model, "the sea is good", "value_zeroing", target="joy", progress=False)
    runs = []

    def counted(*given):
        runs.append(given)
        return value_zeroing_distances(*given)

    monkeypatch.setattr("raison.methods.value_zeroing.value_zeroing_distances", counted)
    each = raison.explain(model, "the sea is good", "value_zeroing", target="each", threshold=0.0, progress=False)
    assert len(each) == 3
    assert len(runs) == 1
    assert {(e.scores, e.evaluations) for e in each} == {(alone.scores, alone.evaluations)}


def test_a_row_that_takes_nothing_in_keeps_all_to_itself():
    distances = torch.tensor([[0.0, 0.0], [0.1, 0.3]], dtype=torch.float64)
    np.testing.assert_allclose(shares(distances), [[1.0, 0.0], [0.25, 0.75]])


def test_a_model_without_layers_is_refused():
    with pytest.raises(UnsupportedError, match="value_zeroing does not work on toy/linear"):
        ValueZeroing().check(Linear())
    with pytest.raises(UnsupportedError, match="Use attention_rollout"):
        ValueZeroing().attribute(make_problem(Linear(), ["good film"]), generators(1))
