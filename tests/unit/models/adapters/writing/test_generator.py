"""The tokens of outputs that are given."""

import pytest
import torch

import raison
from tests.tiny import build_language_model


@pytest.mark.parametrize(
    ("prompt", "output"), [("The old sail", "or told"), ("The old ", "sailor told"), ("The old sailor", " told")]
)
def test_an_output_gets_no_space_that_it_does_not_have(prompt: str, output: str) -> None:
    """Llama's tokenizer puts a space before any text that it is given by itself."""
    model, tokenizer = build_language_model("llama")
    assert tokenizer.tokenize("or told")[0] == "\u2581", "a tokenizer without that space would pass"
    writer = raison.load(model, tokenizer)
    e = raison.explain(writer, prompt, "random", output=output, progress=False)
    assert e.prompt + e.output == prompt + output
    read = [*writer.prompt(prompt).ids]
    ids = torch.tensor([[*read, *(token.id for token in e.tokens)]])
    with torch.no_grad():
        shares = model(input_ids=ids).logits[0].double().softmax(-1)
    expected = [float(shares[len(read) - 1 + place, token.id]) for place, token in enumerate(e.tokens)]
    assert [token.probability for token in e.tokens] == pytest.approx(expected, rel=1e-4)
