"""Explaining what a language model writes: chats, borders, contrasts, methods, errors, and nothing left changed."""

import copy
import json

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core import errors
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.results.generation import GenerationExplanation
from raison.core.targets.target import Target
from raison.models.adapters.writing.generator import Generator
from raison.models.loading.ready_made import base_weights
from raison.models.tokens.continuation import ContinuationEncoder, plain_prompt, spell
from raison.progress import hearing
from tests.packs import counted
from tests.tiny import CHAT_TEMPLATE, LANGUAGE_MODELS, TINY, build_language_model

PROMPT, OUTPUT = "the old sailor told", " a modest story"


@pytest.fixture
def generator():
    return Generator(*build_language_model("llama"), "tiny")


def test_load_gives_a_generator():
    model, tokenizer = build_language_model("llama")
    loaded = raison.load(model, tokenizer)
    assert isinstance(loaded, Generator)
    assert loaded.model is model
    assert loaded.tokenizer is tokenizer
    found = raison.explain(loaded, PROMPT, "occlusion", output=OUTPUT)
    assert found.output == OUTPUT
    assert found.prompt == PROMPT
    assert "".join(token.text for token in found.tokens) == OUTPUT


METHODS = (
    "saliency",
    "input_x_gradient",
    "integrated_gradients(steps=3, baseline='zero')",
    "attention_rollout",
    "occlusion",
    "lime(samples=20)",
    "kernel_shap(samples=20)",
    "sp_pi",
    "random",
)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_methods_explain_each_token_as_if_alone(name, method, earlier):
    """A token's scores in a longer output are those that it has as the last token of a shorter one."""
    generator = Generator(*build_language_model(name), name)
    longer = raison.explain(generator, PROMPT, method, output=OUTPUT, earlier=earlier)
    ids = [token.id for token in longer.tokens]
    prompt = generator.prompt(PROMPT)
    shorter = spell(generator.tokenizer, prompt, ids[:2]).text
    again = raison.explain(generator, PROMPT, method, output=shorter, earlier=earlier)
    assert [token.id for token in again.tokens] == ids[:2]
    for number in range(2):
        assert longer.scores[number] == pytest.approx(again.scores[number], abs=1e-5, rel=1e-3)
        assert len(longer.scores[number]) == len(longer.scores[0]) + number * earlier
    assert GenerationExplanation.from_json(longer.to_json()) == longer


def test_a_list_of_prompts(generator):
    found = raison.explain(generator, [PROMPT, "a boring"], "occlusion", max_new_tokens=2, progress=False)
    single = raison.explain(generator, "a boring", "occlusion", max_new_tokens=2)
    assert found[1].scores == single.scores
    assert len(found) == 2


def test_attention_of_all_tokens_is_read_from_one_pass(generator):
    raison.explain(generator, PROMPT, "attention_last", output=OUTPUT)  # first the trials of a new model
    with counted(generator.model.base_model) as sizes:
        found = raison.explain(generator, PROMPT, "attention_last", output=OUTPUT)
    whole = len(generator.prompt(PROMPT).ids) + len(found.tokens)
    assert sorted(sizes) == [whole - 2, whole - 2, whole - 1]  # besides: with the prompt, and with none of it


def test_gradients_that_do_not_agree_are_not_shared(generator):
    """A path on which the rows' beginnings differ is run row by row, and gives each row's own gradients."""
    prompt = generator.prompt(PROMPT)
    output, _ = generator.output(prompt, OUTPUT)
    rows = ContinuationEncoder(prompt, output)
    reader = generator.reader(rows, tuple(dict.fromkeys(output.ids)))
    encoding = reader.encode(rows.texts, "word", False)
    embeds = reader.ask(WordEmbeddings).embed(encoding)
    target = Target(torch.zeros(len(encoding), dtype=torch.long), None, "logit")
    point = torch.ones(1, dtype=torch.float64)

    def path(text, points):
        moved = embeds[text] * (1 + text)
        moved[: prompt.added] = embeds[text, : prompt.added]
        return moved.expand(len(points), -1, -1)

    gradients, values = reader.ask(WordEmbeddings).path_gradients(encoding, path, point, point, target)
    for text, length in enumerate(encoding.lengths):
        own = path(text, point)[:, :length].clone().requires_grad_()
        logits = generator.model(inputs_embeds=own).logits[0, -1]
        (expected,) = torch.autograd.grad(logits[output.ids[0]], own)
        torch.testing.assert_close(gradients[text][prompt.added :], expected[0, prompt.added :], rtol=1e-3, atol=1e-5)
        assert float(values[text, 0]) == pytest.approx(float(logits[output.ids[0]].detach()), rel=1e-4)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_backward_passes_together_and_one_by_one_agree(name, monkeypatch):
    generator = Generator(*build_language_model(name), name)
    prompt = generator.prompt(PROMPT)
    output, _ = generator.output(prompt, OUTPUT)
    rows = ContinuationEncoder(prompt, output)
    tokens = tuple(dict.fromkeys(output.ids))
    index = torch.tensor([tokens.index(token) for token in output.ids])
    target = Target(index, None, "log_probability")
    points, weights = torch.tensor([0.2, 0.7, 1.0]), torch.tensor([0.5, 0.25, 1.0])
    plain, modes = torch.autograd.grad, []

    def gradient(*args, **settings):
        modes.append(settings.get("is_grads_batched", False))
        return plain(*args, **settings)

    monkeypatch.setattr(torch.autograd, "grad", gradient)
    found = []
    for budget in (10**6, 30):
        reader = generator.reader(rows, tokens)
        reader.budget.tokens = budget
        encoding = reader.encode(rows.texts, "word", False)
        embeds = reader.ask(WordEmbeddings).embed(encoding)

        def path(text, share, embeds=embeds):
            return share[:, None, None] * embeds[text]

        found.append(reader.ask(WordEmbeddings).path_gradients(encoding, path, points, weights, target))
        assert any(modes) == (budget > 30)
        modes.clear()
    torch.testing.assert_close(found[0][1], found[1][1])
    for together, apart in zip(found[0][0], found[1][0], strict=True):
        torch.testing.assert_close(together, apart, rtol=1e-4, atol=1e-6)


def test_nothing_is_left_changed():
    model, tokenizer = build_language_model("llama")
    model.train()
    model.generation_config.do_sample = True
    model.generation_config.temperature = 0.3
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.padding_side = "left"
    tokenizer.backend_tokenizer.enable_truncation(16)
    tokenizer.backend_tokenizer.enable_padding(length=16)
    weights_before = copy.deepcopy(model.state_dict())
    before = (model.generation_config.to_dict(), model.config.to_dict(), tokenizer.backend_tokenizer.to_str())
    state = torch.get_rng_state()
    generator = raison.load(model, tokenizer)
    for method in ("occlusion", "integrated_gradients(steps=2, baseline='zero')"):
        raison.explain(generator, [{"role": "user", "content": PROMPT}], method, max_new_tokens=3, contrast=5)
    assert torch.equal(torch.get_rng_state(), state)
    assert (model.generation_config.to_dict(), model.config.to_dict(), tokenizer.backend_tokenizer.to_str()) == before
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, weights_before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


def test_writing_ends_between_two_tokens_when_nobody_waits(generator, monkeypatch):
    class LeftError(Exception):
        pass

    told, passes = [], []

    def go_on(count):
        told.append(count)
        if len(told) == 3:
            raise LeftError

    prompt = generator.prompt(PROMPT)
    whole = generator.continuation(prompt, 12)
    assert len(whole.ids) == 12
    hook = generator.core.register_forward_hook(lambda *_: passes.append(1))
    with hearing(go_on), pytest.raises(LeftError):
        generator.continuation(prompt, 12)
    hook.remove()
    assert told == [1, 1, 1]
    # One pass more looks whether the prompt gives numbers at all.
    assert len(passes) <= 4
    assert generator.continuation(prompt, 12).ids == whole.ids


def test_gradients_that_output_tokens_share_tell_of_each_point(generator):
    told: list[int] = []
    with hearing(told.append):
        raison.explain(generator, PROMPT, "integrated_gradients(steps=7)", output=OUTPUT, progress=False)
    assert 7 in told


def test_spans_of_bytes_and_spaces():
    _, tokenizer = TINY["gpt2"]()
    prompt = plain_prompt(tokenizer, "the sea")
    for text in (" 海 is", " naß", "\n\n ok", " 👍🏽!"):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        output = spell(tokenizer, prompt, ids)
        assert output.text == text
        joined = prompt.text + output.text
        spelled = [output.token_text(number, joined) for number in range(len(ids))]
        assert all(spelled)
        assert output.spans[0][0] == len(prompt.text)
        assert output.spans[-1][1] == len(joined)
        starts = [start for start, _ in output.spans]
        assert starts == sorted(starts)
        covered = {place for start, end in output.spans for place in range(start, end)}
        assert covered == set(range(len(prompt.text), len(joined)))


def test_a_border_inside_a_token_or_a_word_is_noted(generator):
    together = raison.explain(generator, "the sea", "occlusion", output="shore")
    assert "begin it with a space" in together.notes["border"]
    whole = generator.tokenizer("the story", add_special_tokens=False)["input_ids"]
    cut = next(
        place
        for place in range(5, 9)
        if whole[: len(generator.tokenizer("the story"[:place], add_special_tokens=False)["input_ids"])]
        != generator.tokenizer("the story"[:place], add_special_tokens=False)["input_ids"]
    )
    apart = raison.explain(generator, "the story"[:cut], "occlusion", output="the story"[cut:])
    assert "kept separate" in apart.notes["border"]
    assert raison.explain(generator, PROMPT, "occlusion", output=OUTPUT).notes == {}


def test_contrasts(generator):
    prompt = generator.prompt(PROMPT)
    output, _ = generator.output(prompt, OUTPUT)
    word = raison.explain(generator, PROMPT, "occlusion", output=OUTPUT, contrast="sea")
    first = generator.tokenizer(PROMPT + " sea")["input_ids"][len(prompt.ids)]
    assert generator.token_after(prompt, output, 0, "sea") == first, "the word takes over the output token's space"
    ids = [generator.token_after(prompt, output, number, "sea") for number in range(len(output.ids))]
    assert raison.explain(generator, PROMPT, "occlusion", output=OUTPUT, contrast=ids).scores == word.scores
    numpys = [np.int64(one) for one in ids]
    assert raison.explain(generator, PROMPT, "occlusion", output=OUTPUT, contrast=numpys).scores == word.scores
    plain = raison.explain(generator, PROMPT, "occlusion", output=OUTPUT)
    swapped = raison.explain(generator, PROMPT, "occlusion", output=" sea", of="logit", contrast=output.ids[0])
    assert plain.contrast is None
    assert len(word.contrast) == len(output.ids)
    assert swapped.token(0).against is not None
    breaks = raison.explain(generator, PROMPT, "occlusion", output="\nsea", contrast="moon")
    assert breaks.contrast[0]
    assert "moon".startswith(breaks.contrast[0]), "a line break is no space to take over"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"output": ""}, "output is empty"),
        ({"output": OUTPUT, "max_new_tokens": 3}, "max_new_tokens limits the model's own output"),
        ({"max_new_tokens": 0}, "at least 1"),
        ({"output": OUTPUT, "target": "positive"}, "contrast="),
        ({"output": OUTPUT, "truncate": True}, "shorten the prompt"),
        ({"output": OUTPUT, "contrast": [3, 4]}, "2 contrasts for"),
        ({"output": OUTPUT, "contrast": 10**6}, "does not exist: the vocabulary has"),
        ({"output": OUTPUT, "contrast": " "}, "a word or a token id"),
        ({"output": OUTPUT, "contrast": True}, "the contrast True is not a word or a token id"),
        ({"output": OUTPUT, "contrast": 1.5}, "the contrast 1.5 is not a word or a token id"),
        ({"output": OUTPUT, "contrast": " a"}, "begins with the output token 0 itself"),
        ({"output": OUTPUT, "of": "probabilty"}, "Did you mean 'probability'"),
        ({"output": OUTPUT, "removal": "msk"}, "unknown removal"),
        ({"output": "story " * 200}, "shorten one of them"),
        ({"max_new_tokens": 200}, "shorten one of them"),
        ({"output": OUTPUT, "threshold": 0.5}, "target='each'"),
    ],
)
def test_bad_settings(generator, settings, said):
    with pytest.raises(errors.InputError, match=said):
        raison.explain(generator, PROMPT, "occlusion", **settings)


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("", "empty or blank"),
        ("  \n", "empty or blank"),
        ([{"role": "user", "content": "slow"}], "no chat template"),
        ([], "at least one prompt"),
    ],
)
def test_bad_prompts(generator, prompt, said):
    with pytest.raises(errors.InputError, match=said):
        raison.explain(generator, prompt, "occlusion", output=OUTPUT)


def test_a_model_that_ends_at_once():
    model, tokenizer = build_language_model("gpt2")
    first = int(model(torch.tensor([tokenizer(PROMPT)["input_ids"]])).logits[0, -1].argmax())
    model.generation_config.eos_token_id = [first, 1]
    with pytest.raises(errors.InputError, match="ends the text right after the prompt"):
        raison.explain(raison.load(model, tokenizer), PROMPT, "occlusion")


def test_settings_of_writing_do_not_fit_a_classifier():
    classifier = raison.load(*TINY["bert"]())
    for settings in ({"output": "x"}, {"contrast": "x"}, {"earlier": True}, {"max_new_tokens": 3}):
        with pytest.raises(errors.InputError, match="this model is a classifier"):
            raison.explain(classifier, PROMPT, "occlusion", **settings)


def test_a_model_whose_forward_function_was_replaced_is_refused():
    model, tokenizer = build_language_model("llama")
    model.lm_head.register_forward_hook(lambda _module, _args, out: out)
    forward = model.forward

    def capped(*args, **settings):
        found = forward(*args, **settings)
        found.logits = 3 * torch.tanh(found.logits / 3)
        return found

    model.forward = capped
    with pytest.raises(errors.UnsupportedError, match="computes its logits in a way that is not known"):
        raison.explain(raison.load(model, tokenizer), PROMPT, "occlusion", output=OUTPUT)


def test_a_slow_tokenizer_is_refused():
    model, tokenizer = build_language_model("llama")

    class Slow(PreTrainedTokenizerFast):
        is_fast = False

    slow = Slow(tokenizer_object=tokenizer.backend_tokenizer)
    with pytest.raises(errors.LoadError, match="use_fast=True"):
        Generator(model, slow, "tiny")


def test_command_line(tmp_path):
    model, tokenizer = build_language_model("llama")
    tokenizer.chat_template = CHAT_TEMPLATE
    folder, html = tmp_path / "model", tmp_path / "page.html"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    common = ["explain", "the sea", "--model", str(folder), "-M", "occlusion", "--output", " a plot"]
    shown = CliRunner().invoke(app, [*common, "--html", str(html), "--contrast", "sea"])
    assert shown.exit_code == 0, shown.output
    assert "Written" in shown.output
    assert "and not" in shown.output
    assert "<table" in html.read_text()
    plain = CliRunner().invoke(app, [*common, "--json", "--chat", "--earlier"])
    assert plain.exit_code == 0, plain.output
    data = json.loads(plain.stdout)
    assert data["earlier"] is True
    assert data["prompt"].startswith("<|user|>")


@pytest.mark.thorough
@pytest.mark.demo
def test_real_model_gives_the_scores_of_plain_calls():
    generator = raison.load(base_weights.fetch("smollm2"), dtype="float32")
    model, tokenizer = generator.model, generator.tokenizer
    prompt, output = "Anna lives in Paris. Anna's city is", " the capital"
    ids = tokenizer(prompt + output)["input_ids"]
    first = len(tokenizer(prompt)["input_ids"])
    settings = {"output": output, "of": "log_probability", "unit": "token"}
    slopes = raison.explain(generator, prompt, "input_x_gradient", **settings)
    erased = raison.explain(generator, prompt, "occlusion", removal="delete", **settings)
    embeds = model.get_input_embeddings()(torch.tensor([ids])).detach().requires_grad_()
    logs = model(inputs_embeds=embeds).logits[0].log_softmax(-1)
    for number, token in enumerate(ids[first:]):
        value = logs[first - 1 + number, token]
        (gradient,) = torch.autograd.grad(value, embeds, retain_graph=True)
        expected = (gradient * embeds.detach()).sum(-1)[0, :first].tolist()
        assert slopes.scores[number] == pytest.approx(expected, rel=1e-2, abs=2e-3)
        with torch.no_grad():
            without = model(torch.tensor([ids[1 : first + number]])).logits[0, -1].log_softmax(-1)[token]
        assert erased.scores[number][0] == pytest.approx(float(value.detach() - without), abs=1e-3)


def test_each_prompt_has_its_own_output():
    model = raison.load(*build_language_model("llama"))
    prompts, outputs = [PROMPT, "a film with"], [OUTPUT, " more of it"]
    together = raison.explain(model, prompts, "occlusion", output=outputs)
    apart = [
        raison.explain(model, *pair[:1], "occlusion", output=pair[1]) for pair in zip(prompts, outputs, strict=True)
    ]
    assert [e.scores for e in together] == [e.scores for e in apart]
    assert [e.output for e in together] == [e.output for e in apart]
    with pytest.raises(errors.InputError, match="1 outputs for 2 prompts"):
        raison.explain(model, prompts, "occlusion", output=outputs[:1])
    with pytest.raises(errors.InputError, match="there is one prompt"):
        raison.explain(model, PROMPT, "occlusion", output=outputs)
    with pytest.raises(errors.InputError, match="output= is 3"):
        raison.explain(model, PROMPT, "occlusion", output=3)
    with pytest.raises(errors.InputError, match="max_new_tokens limits"):
        raison.explain(model, prompts, "occlusion", output=outputs, max_new_tokens=3)
