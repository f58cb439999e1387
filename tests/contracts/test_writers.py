"""The contract of encoder-decoders that write, for every family of them and every method of the catalogue."""

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.capabilities.decomposition import Anatomy
from raison.core.capabilities.step_logits import StepLogits
from raison.core.errors import RaisonError
from raison.core.method import Method, Property
from raison.core.results.generation import GenerationExplanation
from raison.explaining import attribution
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.generator import Generator
from raison.models.tokens.continuation import ContinuationEncoder
from tests.reused import reused
from tests.tiny import WRITERS, build_writer

PROMPT, LONGER, OUTPUT = "the old sailor told", "a dull plot , and nobody believed him at all", "a modest story"
CHEAP = {
    "kernel_shap": {"samples": 20},
    "lime": {"samples": 20},
    "integrated_gradients": {"steps": 3},
    "sequential_integrated_gradients": {"steps": 2},
    "discretized_integrated_gradients": {"steps": 3},
    "shapley_sampling": {"samples": 20},
    "resampled": {"method": "integrated_gradients(steps=2)", "baselines": 2},
    "reagent": {"runs": 1, "min_steps": 2, "max_steps": 4},
    "gradient_shap": {"samples": 4},
    "smooth_grad": {"samples": 3},
}
ABSENT = frozenset({Anatomy, ReadableAttention, ReplaceableAttention, StepLogits})
"""Capabilities that an encoder-decoder that writes does not offer."""
ASKING = {"self_explanation"}
"""Methods that ask a model that follows instructions."""
REFUSED = ASKING | {
    name
    for name in CATALOGUE.names
    for method in [CATALOGUE.get(name)]
    if method.needs & ABSENT or Property.TRAINED in method.properties
}


@pytest.fixture(params=WRITERS)
def generator(request: pytest.FixtureRequest) -> Iterator[Generator]:
    """A tiny encoder-decoder that writes: see tests/reused.py."""
    yield from reused(
        request, ("writes", request.param), lambda: Generator(*build_writer(request.param), request.param)
    )


def reader_of(
    generator: Generator, prompt: str = PROMPT, *, earlier: bool = False
) -> tuple[Classifier, tuple[str, ...]]:
    """A reader of the output's tokens, and its rows."""
    source = generator.prompt(prompt)
    rows = ContinuationEncoder(source, generator.output(source, OUTPUT)[0], earlier)
    return generator.reader(rows, tuple(dict.fromkeys(rows.output.ids))), rows.texts


def plain_logits(generator: Generator, prompt: str) -> torch.Tensor:
    """The model's own logits for every token of the output, from one plain call."""
    source = generator.prompt(prompt)
    output = generator.output(source, OUTPUT)[0]
    ids = torch.tensor([[*source.ids, *output.ids[:-1]]])
    with torch.no_grad():
        found = generator.model(input_ids=ids[:, : source.border], decoder_input_ids=ids[:, source.border :])
    return found.logits[0, -len(output.ids) :]


def of_tokens(logits: torch.Tensor, ids: tuple[int, ...]) -> torch.Tensor:
    """Log-probabilities of chosen tokens."""
    return logits.double().log_softmax(-1)[:, list(ids)]


@pytest.mark.parametrize("prompt", [PROMPT, LONGER])
def test_everything_kept_is_a_plain_pass(generator: Generator, prompt: str) -> None:
    reader, texts = reader_of(generator, prompt)
    encoding = reader.encode(texts, "word")
    keeps = [torch.ones(1, count, dtype=torch.bool) for count in encoding.unit_counts]
    kept = torch.cat(reader.masked_logits(encoding, keeps, reader.removals[0]))
    expected = of_tokens(plain_logits(generator, prompt), reader.readout.tokens)  # type: ignore[union-attr]
    torch.testing.assert_close(kept.double().log_softmax(-1)[:, :-1], expected, rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        embeds = reader.passes.network.embed(encoding)
        for passed in (reader.passes.logits(encoding), reader.passes.logits(encoding, embeds)):
            torch.testing.assert_close(passed, kept, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("removal", ["unk", "delete"])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_batch_gives_what_each_masked_text_gives_alone(generator: Generator, earlier: bool, removal: str) -> None:
    reader, texts = reader_of(generator, LONGER, earlier=earlier)
    encoding = reader.encode(texts, "word")
    rng = np.random.default_rng(5)
    keeps = [torch.from_numpy(rng.random((6, count)) < 0.5) for count in encoding.unit_counts]
    together = reader.masked_logits(encoding, keeps, removal)
    for text, wanted in enumerate(keeps):
        row = encoding.select([text])
        for number, keep in enumerate(wanted):
            [alone] = reader.masked_logits(row, [keep[None]], removal)
            torch.testing.assert_close(together[text][number], alone[0], rtol=1e-5, atol=1e-5)


@contextmanager
def counted(generator: Generator) -> Iterator[dict[str, int]]:
    """Rows that each stack runs."""
    found = {"encoder": 0, "decoder": 0}
    stacks = {"encoder": generator.model.get_encoder(), "decoder": generator.model.get_decoder()}

    def watch(name: str) -> Callable[..., None]:
        def count(_module: object, _args: object, output: tuple[torch.Tensor, ...]) -> None:
            found[name] += len(output[0])

        return count

    handles = [stack.register_forward_hook(watch(name)) for name, stack in stacks.items()]
    yield found
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("removal", ["unk", "delete"])
def test_each_different_masked_text_is_encoded_once_and_decoded_once(generator: Generator, removal: str) -> None:
    """Whatever the number of output tokens."""
    reader, texts = reader_of(generator)
    encoding = reader.encode(texts, "word")
    keeps = [torch.tensor([[True, True, False, True], [True] * 4, [True, True, False, True]])] * len(encoding)
    with counted(generator) as found:
        reader.masked_logits(encoding, keeps, removal)
    assert len(encoding) > 2
    assert found == {"encoder": 2, "decoder": 2}


def test_an_absent_earlier_token_needs_no_other_encoding(generator: Generator) -> None:
    reader, texts = reader_of(generator, earlier=True)
    encoding = reader.encode(texts, "word")
    last = len(encoding) - 1
    keep = torch.ones(2, encoding.unit_counts[last], dtype=torch.bool)
    keep[0, 4] = False
    with counted(generator) as found:
        reader.masked_logits(encoding.select([last]), [keep], "unk")
    assert found == {"encoder": 1, "decoder": 2}


def test_a_fully_deleted_text_is_read(generator: Generator) -> None:
    reader, texts = reader_of(generator, earlier=True)
    encoding = reader.encode(texts, "token")
    keeps = [torch.zeros(1, count, dtype=torch.bool) for count in encoding.unit_counts]
    logits = reader.masked_logits(encoding, keeps, "delete")
    assert all(bool(own.isfinite().all()) for own in logits)


def test_one_forward_pass_of_a_point_serves_the_gradients_of_all_tokens(generator: Generator) -> None:
    def rows(steps: int) -> dict[str, int]:
        with counted(generator) as found:
            method = raison.methods.IntegratedGradients(steps=steps, baseline="unk")
            raison.explain(generator, PROMPT, method, output=OUTPUT)
        return found

    rows(3)
    few, many = rows(3), rows(8)
    assert {name: many[name] - few[name] for name in few} == {"encoder": 5, "decoder": 5}


def state_of(generator: Generator) -> tuple[object, ...]:
    model, tokenizer = generator.model, generator.tokenizer
    return (
        copy.deepcopy(model.state_dict()),
        model.config.to_dict(),
        model.generation_config.to_dict(),
        [module.training for module in model.modules()],
        tokenizer.backend_tokenizer.to_str(),
        [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()],
    )


def refused(method: Method, reader: Classifier) -> RaisonError | None:
    """Why a method does not explain this model: what it lacks, or what the method's own check says."""
    try:
        attribution.check(reader, method)
    except RaisonError as error:
        return error
    return None


def test_what_is_refused(generator: Generator) -> None:
    """Methods that replace attention, take layers apart, need training, or ask a model that follows instructions."""
    reader, _ = reader_of(generator)
    found = {name for name in CATALOGUE.names if refused(CATALOGUE.create(name), reader) is not None}
    assert found == REFUSED


@pytest.mark.new_model
@pytest.mark.in_turn(2 * len(WRITERS))
@pytest.mark.parametrize("method", CATALOGUE.names)
def test_methods(generator: Generator, method: str) -> None:
    """They explain every token, or say what is lacking; nothing of the caller's is changed, and nothing is random."""
    generator.model.train()
    weights, *before = state_of(generator)
    random = torch.get_rng_state()
    chosen = CATALOGUE.get(method)(**CHEAP.get(method, {}))
    for earlier in (False, True):
        if refusal := refused(chosen, reader_of(generator)[0]):
            with pytest.raises(type(refusal), match=re.escape(str(refusal))):
                raison.explain(generator, PROMPT, chosen, output=OUTPUT, earlier=earlier)
            continue
        found = raison.explain(generator, PROMPT, chosen, output=OUTPUT, earlier=earlier)
        assert [len(row) for row in found.scores] == [4 + number * earlier for number in range(len(found.tokens))]
        assert np.isfinite(np.concatenate(found.scores)).all()
        if earlier:
            again = raison.explain(generator, PROMPT, chosen, output=OUTPUT, earlier=earlier)
            assert found.scores == again.scores
        assert GenerationExplanation.from_json(found.to_json()) == found
    now, *after = state_of(generator)
    assert after == before
    assert all(torch.equal(value, weights[name]) for name, value in now.items())  # type: ignore[attr-defined, index]
    assert all(parameter.grad is None for parameter in generator.model.parameters())
    assert torch.equal(torch.get_rng_state(), random)
