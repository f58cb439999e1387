"""Each output token explained alone, literally from the formulas and with plain transformers calls only."""

from functools import cache
from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch

import raison
from raison.core.results.generation import GenerationExplanation
from raison.models.adapters.writing.generator import Generator
from raison.models.stack.hooks import hooked
from raison.models.tokens.continuation import ContinuationEncoder
from raison.numerics.gradients.quadrature import gauss_legendre
from tests.tiny import LANGUAGE_MODELS, build_language_model

PROMPT = "the old sailor told"
OUTPUT = " a modest story"


def build(name):
    return Generator(*build_language_model(name), name)


def explain(generator, method, **settings):
    chosen = {"output": OUTPUT, "unit": "token", "of": "log_probability", **settings}
    found = raison.explain(generator, PROMPT, method, **chosen)
    assert isinstance(found, GenerationExplanation)
    return found


def quantity(logits, token, of, against=None):
    """The target of one output token from the logits over the vocabulary after its prompt."""
    logits = logits.double()
    if of == "log_odds":
        rest = torch.cat([logits[:token], logits[token + 1 :]])
        return logits[token] - rest.logsumexp(0)
    values = {"logit": logits, "margin": logits, "probability": logits.softmax(-1)}.get(of, logits.log_softmax(-1))
    return values[token] if against is None else values[token] - values[against]


def ids_of(generator):
    """Prompt and output ids as the tokenizer gives them for the whole text, and how many it adds before the words."""
    whole = generator.tokenizer(PROMPT + OUTPUT)["input_ids"]
    prompt = generator.tokenizer(PROMPT)["input_ids"]
    assert whole[: len(prompt)] == prompt
    added = len(prompt) - len(generator.tokenizer(PROMPT, add_special_tokens=False)["input_ids"])
    return prompt, whole[len(prompt) :], added


def owners_of(generator, found, number=0):
    """The unit of each token of the prompt's words and, where outputs are units too, of those before one.

    Found from the characters; a token without any (a space that the tokenizer trims) goes with the next.
    """
    encoded = generator.tokenizer(PROMPT, return_offsets_mapping=True, add_special_tokens=False)
    units = found.units[: len(found.scores[0])]
    owners = [
        next(unit for unit, span in enumerate(units) if (start < span.end and end > span.start) or span.start >= end)
        for start, end in encoded["offset_mapping"]
    ]
    return owners + [len(units) + step for step in range(number if found.earlier else 0)]


def per_unit(scores, owners):
    """Sums of the tokens' scores."""
    sums = np.zeros(max(owners) + 1)
    np.add.at(sums, owners, scores.detach().numpy())
    return sums


def value_of_ids(generator, ids, token, of, against=None):
    with torch.no_grad():
        logits = generator.model(torch.tensor([ids])).logits[0, -1]
    return float(quantity(logits, token, of, against))


def gradient(generator, embeds, token, of, against=None):
    embeds = embeds.detach().requires_grad_()
    logits = generator.model(inputs_embeds=embeds[None]).logits[0, -1]
    return torch.autograd.grad(quantity(logits, token, of, against), embeds)[0].double()


@pytest.mark.parametrize("of", ["probability", "logit", "log_odds", "log_probability"])
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_input_x_gradient(name, of):
    generator = build(name)
    prompt, output, added = ids_of(generator)
    found = explain(generator, "input_x_gradient", of=of)
    assert [token.id for token in found.tokens] == output
    table = generator.model.get_input_embeddings()
    for number, token in enumerate(output):
        embeds = table(torch.tensor(prompt + output[:number]))
        expected = (embeds.double() * gradient(generator, embeds, token, of)).sum(-1)[added : len(prompt)]
        expected = per_unit(expected, owners_of(generator, found))
        np.testing.assert_allclose(found.scores[number], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_integrated_gradients(name, earlier):
    generator = build(name)
    prompt, output, added = ids_of(generator)
    found = explain(generator, "integrated_gradients(steps=6, baseline='zero')", earlier=earlier)
    table = generator.model.get_input_embeddings()
    nodes, weights = gauss_legendre(6)
    for number, token in enumerate(output):
        ends = table(torch.tensor(prompt + output[:number])).detach()
        start = ends.clone()
        start[added : None if earlier else len(prompt)] = 0
        total = sum(
            weight * gradient(generator, start + float(node) * (ends - start), token, "log_probability")
            for node, weight in zip(nodes, weights, strict=True)
        )
        expected = ((ends - start).double() * total).sum(-1)[added : None if earlier else len(prompt)]
        expected = per_unit(expected, owners_of(generator, found, number))
        np.testing.assert_allclose(found.scores[number], expected, rtol=1e-3, atol=1e-4)


def kept(ids, keep, first, placeholder, replacement):
    """The ids with absent tokens replaced, or deleted where there is no replacement."""
    chosen = []
    for place, token in enumerate(ids):
        if not first <= place < first + len(keep) or keep[place - first]:
            chosen.append(token)
        elif replacement is not None:
            chosen.append(replacement)
    return chosen or [placeholder]


def replacement_of(generator, removal):
    return {"delete": None, "unk": generator.tokenizer.unk_token_id}[removal]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("removal", ["unk", "delete"])
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_occlusion(name, removal, earlier):
    generator = build(name)
    prompt, output, added = ids_of(generator)
    found = explain(generator, "occlusion", removal=removal, earlier=earlier)
    replacement = replacement_of(generator, removal)
    placeholder = generator.tokenizer.bos_token_id
    for number, token in enumerate(output):
        ids = prompt + output[:number]
        owners = owners_of(generator, found, number)
        units = max(owners) + 1
        full = value_of_ids(generator, ids, token, "log_probability")
        expected = []
        for unit in range(units):
            keep = [owner != unit for owner in owners]
            changed = kept(ids, keep, added, placeholder, replacement)
            expected.append(full - value_of_ids(generator, changed, token, "log_probability"))
        assert found.scores[number] == pytest.approx(expected, abs=1e-3, rel=1e-3)
        assert found.tokens[number].value_full == pytest.approx(full, abs=1e-4)
        empty = kept(ids, [False] * len(owners), added, placeholder, replacement)
        expected_empty = value_of_ids(generator, empty, token, "log_probability")
        assert found.tokens[number].value_empty == pytest.approx(expected_empty, abs=1e-3)


def exact_shapley(of_units, units):
    scores, value = np.zeros(units), cache(of_units)
    for unit in range(units):
        others = [other for other in range(units) if other != unit]
        for size in range(units):
            for chosen in combinations(others, size):
                gain = value(frozenset({*chosen, unit})) - value(frozenset(chosen))
                scores[unit] += gain / (units * comb(units - 1, size))
    return scores


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_kernel_shap_gives_shapley_values_of_each_token_and_of_the_joint_log_probability(name):
    generator = build(name)
    prompt, output, added = ids_of(generator)
    found = explain(generator, "kernel_shap(samples=1000)", unit="word", removal="unk")
    words = len(found.units)
    assert words == len(PROMPT.split())
    owners = owners_of(generator, found)

    @cache
    def of_token(chosen, number):
        keep = [owner in chosen for owner in owners]
        ids = kept(prompt + output[:number], keep, added, 0, generator.tokenizer.unk_token_id)
        return value_of_ids(generator, ids, output[number], "log_probability")

    def value(chosen, numbers):
        return sum(of_token(frozenset(chosen), number) for number in numbers)

    for number in range(len(output)):
        expected = exact_shapley(lambda chosen, number=number: value(chosen, [number]), words)
        assert found.scores[number] == pytest.approx(expected, abs=1e-3)
    joint = exact_shapley(lambda chosen: value(chosen, range(len(output))), words)
    whole = found.whole()
    assert whole.scores == pytest.approx(joint, abs=2e-3)
    assert whole.value_full == pytest.approx(value(set(range(words)), range(len(output))), abs=1e-3)
    assert whole.value_empty == pytest.approx(value(set(), range(len(output))), abs=1e-3)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_sum_of_gradients_is_that_of_the_joint_log_probability(name):
    """One pass over prompt and output; its loss is the joint log-probability."""
    generator = build(name)
    prompt, output, added = ids_of(generator)
    embeds = generator.model.get_input_embeddings()(torch.tensor(prompt + output)).detach().requires_grad_()
    # The output's own embeddings stay: they are what was written, not what is explained.
    logits = generator.model(inputs_embeds=embeds[None]).logits[0].double().log_softmax(-1)
    joint = sum(logits[len(prompt) - 1 + number, token] for number, token in enumerate(output))
    (slope,) = torch.autograd.grad(joint, embeds)
    expected = (slope.double() * embeds.detach().double()).sum(-1)[added : len(prompt)]
    whole = explain(generator, "input_x_gradient")
    expected = per_unit(expected, owners_of(generator, whole))
    whole = whole.whole()
    np.testing.assert_allclose(whole.scores, expected, rtol=1e-3, atol=1e-3)
    assert whole.value_full == pytest.approx(float(joint.detach()), abs=1e-3)


@pytest.mark.parametrize("of", ["probability", "logit", "log_probability"])
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_contrast(name, of):
    generator = build(name)
    prompt, output, added = ids_of(generator)
    others = [(token + 7) % 400 + 3 for token in output]
    found = explain(generator, "input_x_gradient", of=of, contrast=others)
    table = generator.model.get_input_embeddings()
    for number, (token, other) in enumerate(zip(output, others, strict=True)):
        embeds = table(torch.tensor(prompt + output[:number]))
        expected = (embeds.double() * gradient(generator, embeds, token, of, other)).sum(-1)[added : len(prompt)]
        expected = per_unit(expected, owners_of(generator, found))
        np.testing.assert_allclose(found.scores[number], expected, rtol=1e-3, atol=1e-4)
        own = found.tokens[number]
        share = value_of_ids(generator, prompt + output[:number], other, "probability")
        assert own.against_probability == pytest.approx(share, rel=1e-3)
        full = value_of_ids(generator, prompt + output[:number], token, of, other)
        assert own.value_full == pytest.approx(full, abs=1e-3)


def test_margin_is_over_the_likeliest_other_token():
    generator = build("llama")
    prompt, output, _ = ids_of(generator)
    found = explain(generator, "occlusion", of="margin")
    for number, token in enumerate(output):
        with torch.no_grad():
            logits = generator.model(torch.tensor([prompt + output[:number]])).logits[0, -1]
        logits[token], own = -torch.inf, float(logits[token])
        assert found.tokens[number].value_full == pytest.approx(own - float(logits.max()), abs=1e-3)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_continuation_is_greedy(name):
    generator = build(name)
    prompt = generator.tokenizer(PROMPT)["input_ids"]
    ids = list(prompt)
    for _ in range(6):
        with torch.no_grad():
            ids.append(int(generator.model(torch.tensor([ids])).logits[0, -1].argmax()))
    ends = generator.tokenizer.eos_token_id
    written = ids[len(prompt) :]
    written = written[: written.index(ends)] if ends in written else written
    found = raison.explain(generator, PROMPT, "random", max_new_tokens=6)
    assert [token.id for token in found.tokens] == written


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_one_pass_of_the_whole_output_serves_all_tokens(name):
    """Tokens at the embedding table: those of the masked prompts' tree and, after each, of the output but its last."""
    generator = build(name)
    prompt = generator.prompt(PROMPT)
    output, _ = generator.output(prompt, OUTPUT)
    rows = ContinuationEncoder(prompt, output)
    reader = generator.reader(rows, tuple(dict.fromkeys(output.ids)))
    encoding = reader.encode(rows.texts, "token", False)
    units = encoding.unit_counts[0]
    rng = np.random.default_rng(3)
    single = torch.from_numpy(rng.random((10, units)) < 0.6)
    keeps = [single] * len(output.ids)
    count = [0]

    def watch(_module, _args, out):
        count[0] += out.shape[0] * out.shape[1]

    # No hook of the caller's: with one, no prompt's states would be stored.
    with hooked([generator.model.get_input_embeddings()], after=watch):
        # The first time, the packed pass is compared with a plain one, and the begin-of-text token goes into the cache.
        reader.masked_logits(encoding, keeps, "unk")
        count[0] = 0
        reader.masked_logits(encoding, keeps, "unk")
    owners = encoding.unit_ids[0, prompt.added : len(prompt.ids)]
    sequences = [
        kept([*prompt.ids, *output.ids[:-1]], keep, prompt.added, 0, generator.tokenizer.unk_token_id)
        for keep in single[:, owners].tolist()
    ]
    tree = {tuple(ids[:end]) for ids in sequences for end in range(prompt.added + 1, len(ids) + 1)}
    assert count[0] == len(tree)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_one_forward_pass_of_a_point_serves_the_gradients_of_all_tokens(name):
    generator = build(name)
    seen = []
    handle = generator.model.base_model.register_forward_hook(lambda _m, _args, out: seen.append(len(out[0])))
    rows = []
    # The first time, the output matrix is checked as well.
    explain(generator, "random")
    for steps in (3, 8):
        seen.clear()
        explain(generator, f"integrated_gradients(steps={steps}, baseline='unk')")
        rows.append(sum(seen))
    handle.remove()
    assert rows[1] - rows[0] == 5, "five more points are five more rows, however many output tokens there are"
