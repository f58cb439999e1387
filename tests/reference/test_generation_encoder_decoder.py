"""Each token that an encoder-decoder writes explained alone, from the formulas, with plain transformers calls only."""

from functools import cache

import numpy as np
import pytest
import torch

import raison
from raison.core.results.generation import GenerationExplanation
from raison.models.adapters.writing.generator import Generator
from tests.reference.test_generation import exact_shapley, kept, per_unit, quantity
from tests.tiny import ENCODER_DECODERS, WRITERS, build_writer

PROMPT = "the old sailor told"
OUTPUT = "a modest story"


def build(name):
    return Generator(*build_writer(name), name)


def explain(generator, method, **settings):
    chosen = {"output": OUTPUT, "unit": "token", "of": "log_probability", **settings}
    found = raison.explain(generator, PROMPT, method, **chosen)
    assert isinstance(found, GenerationExplanation)
    return found


def start_of(generator):
    """What the decoder begins with: its start token and what its outputs always begin with."""
    model, tokenizer = generator.model, generator.tokenizer
    first = {"bart": tokenizer.bos_token_id, "m_bart": model.generation_config.forced_bos_token_id}
    return [model.config.decoder_start_token_id, *([first[generator.name]] if generator.name in first else [])]


def ids_of(generator):
    """The text's tokens, the decoder's start, the output's tokens, and the places of the text's own among the first."""
    tokenizer = generator.tokenizer
    source = tokenizer(PROMPT)["input_ids"]
    output = tokenizer(OUTPUT, add_special_tokens=False)["input_ids"]
    inner = tokenizer(PROMPT, add_special_tokens=False)["input_ids"]
    first = next(place for place in range(3) if source[place : place + len(inner)] == inner)
    return source, start_of(generator), output, range(first, first + len(inner))


def owners_of(tokenizer, text, units):
    """The unit of each of the text's own tokens; a token without characters goes with the next."""
    offsets = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)["offset_mapping"]
    return [
        next(unit for unit, span in enumerate(units) if (start < span.end and end > span.start) or span.start >= end)
        for start, end in offsets
    ]


def owners_in(generator, found):
    return owners_of(generator.tokenizer, PROMPT, found.units[: len(found.scores[0])])


def value_of_ids(generator, source, written, token, of, against=None):
    with torch.no_grad():
        given = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([written])}
        logits = generator.model(**given).logits[0, -1]
    return float(quantity(logits, token, of, against))


def embeds_of(generator, source, written):
    """Word embeddings as each stack looks them up."""
    model = generator.model
    tables = (stack.get_input_embeddings() for stack in (model.get_encoder(), model.get_decoder()))
    return [table(torch.tensor(ids)).detach() for table, ids in zip(tables, (source, written), strict=True)]


def encoder_scale(generator):
    """What word embeddings are multiplied by before they are given to the encoder in place of ids.

    Marian and Pegasus scale what their encoder looks up, but take what it is given as it is; their decoder scales both.
    The scale of mBART is in its tables.
    """
    return generator.model.config.d_model**0.5 if generator.name in ("marian", "pegasus") else 1.0


def gradients(generator, embeds, token, of, against=None):
    """Of a target, with respect to the encoder's and the decoder's word embeddings."""
    source, written = (one.detach().requires_grad_() for one in embeds)
    given = {"inputs_embeds": encoder_scale(generator) * source[None], "decoder_inputs_embeds": written[None]}
    logits = generator.model(**given).logits[0, -1]
    found = torch.autograd.grad(quantity(logits, token, of, against), [source, written])
    return [one.double() for one in found]


@pytest.mark.parametrize("of", ["log_probability", "log_odds"])
@pytest.mark.parametrize("name", WRITERS)
def test_input_x_gradient(name, of):
    generator = build(name)
    source, start, output, own = ids_of(generator)
    found = explain(generator, "input_x_gradient", of=of)
    assert [token.id for token in found.tokens] == output
    for number, token in enumerate(output):
        embeds = embeds_of(generator, source, start + output[:number])
        slope = gradients(generator, embeds, token, of)[0]
        expected = per_unit((embeds[0].double() * slope).sum(-1)[list(own)], owners_in(generator, found))
        np.testing.assert_allclose(found.scores[number], expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("method", ["input_x_gradient", "saliency"])
@pytest.mark.parametrize("name", WRITERS)
def test_gradients_of_earlier_tokens(name, method):
    """Those of the decoder's own embeddings."""
    generator = build(name)
    source, start, output, own = ids_of(generator)
    found = explain(generator, method, earlier=True)
    for number, token in enumerate(output):
        embeds = embeds_of(generator, source, start + output[:number])
        slopes = gradients(generator, embeds, token, "log_probability")
        parts = [slope.norm(dim=-1) for slope in slopes]
        if method == "input_x_gradient":
            parts = [(own.double() * slope).sum(-1) for own, slope in zip(embeds, slopes, strict=True)]
        expected = [
            *per_unit(parts[0][list(own)], owners_in(generator, found)),
            *parts[1][len(start) :].tolist(),
        ]
        np.testing.assert_allclose(found.scores[number], expected, rtol=1e-3, atol=1e-5)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("removal", ["unk", "delete"])
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("name", WRITERS)
def test_occlusion(name, earlier, removal):
    generator = build(name)
    source, start, output, own = ids_of(generator)
    found = explain(generator, "occlusion", removal=removal, earlier=earlier)
    owners = owners_in(generator, found)
    units = len(found.scores[0])
    unknown = generator.tokenizer.unk_token_id if removal == "unk" else None
    for number, token in enumerate(output):
        written = start + output[:number]
        full = value_of_ids(generator, source, written, token, "log_probability")
        expected = []
        for unit in range(units + number * earlier):
            texts = kept(source, [owner != unit for owner in owners], own[0], 0, unknown)
            before = [token if units + place != unit else unknown for place, token in enumerate(output[:number])]
            left = start + [one for one in before if one is not None]
            expected.append(full - value_of_ids(generator, texts, left, token, "log_probability"))
        assert found.scores[number] == pytest.approx(expected, abs=1e-3, rel=1e-3)
        assert found.tokens[number].value_full == pytest.approx(full, abs=1e-4)


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_kernel_shap_gives_shapley_values_of_each_token_and_of_the_joint_log_probability(name):
    generator = build(name)
    source, start, output, own = ids_of(generator)
    found = explain(generator, "kernel_shap(samples=1000)", unit="word", removal="unk")
    owners, words = owners_in(generator, found), len(found.units)

    @cache
    def of_token(chosen, number):
        texts = kept(source, [owner in chosen for owner in owners], own[0], 0, generator.tokenizer.unk_token_id)
        return value_of_ids(generator, texts, start + output[:number], output[number], "log_probability")

    def value(chosen, numbers):
        return sum(of_token(frozenset(chosen), number) for number in numbers)

    expected = exact_shapley(lambda chosen: value(chosen, [1]), words)
    assert found.scores[1] == pytest.approx(expected, abs=1e-3)
    joint = exact_shapley(lambda chosen: value(chosen, range(len(output))), words)
    assert found.whole().scores == pytest.approx(joint, abs=2e-3)


@pytest.mark.parametrize("name", WRITERS)
def test_contrast(name):
    generator = build(name)
    source, start, output, own = ids_of(generator)
    others = [(token + 7) % 400 + 3 for token in output]
    found = explain(generator, "input_x_gradient", contrast=others, of="logit")
    for number, (token, other) in enumerate(zip(output, others, strict=True)):
        embeds = embeds_of(generator, source, start + output[:number])
        slope = gradients(generator, embeds, token, "logit", other)[0]
        expected = per_unit((embeds[0].double() * slope).sum(-1)[list(own)], owners_in(generator, found))
        np.testing.assert_allclose(found.scores[number], expected, rtol=1e-3, atol=1e-4)
        full = value_of_ids(generator, source, start + output[:number], token, "logit", other)
        assert found.tokens[number].value_full == pytest.approx(full, abs=1e-3)


@pytest.mark.parametrize("name", WRITERS)
def test_own_output_is_greedy(name):
    """Also where the model's settings ask for other words."""
    generator = build(name)
    settings = generator.model.generation_config
    settings.update(num_beams=3, no_repeat_ngram_size=1, repetition_penalty=3.0, do_sample=True, num_return_sequences=3)
    settings.update(return_dict_in_generate=True, output_scores=True, stop_strings=["a"], guidance_scale=2.0)
    settings.update(min_new_tokens=6, cache_implementation="static", output_attentions=True)
    before = settings.to_dict()
    source, written = generator.tokenizer(PROMPT)["input_ids"], start_of(generator)
    first = len(written)
    for _ in range(6):
        with torch.no_grad():
            given = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([written])}
            written.append(int(generator.model(**given).logits[0, -1].argmax()))
    ends = generator.tokenizer.eos_token_id
    own = written[first:]
    own = own[: own.index(ends)] if ends in own else own
    settings.update(bad_words_ids=[[one] for one in own[:2]], suppress_tokens=own[2:3], begin_suppress_tokens=own[:1])
    before |= {name: getattr(settings, name) for name in ("bad_words_ids", "suppress_tokens", "begin_suppress_tokens")}
    found = raison.explain(generator, PROMPT, "random", max_new_tokens=6)
    assert [token.id for token in found.tokens] == own
    assert settings.to_dict() == before
