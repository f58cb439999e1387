"""The contract of classification by completion: cached and packed predictions are those of whole passes."""

import copy
from collections.abc import Iterator

import pytest
import torch
from transformers import PreTrainedModel

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.embeddings import Shift, WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.capabilities.step_logits import StepLogits
from raison.core.errors import InputError, LoadError
from raison.core.targets.target import Target
from raison.models.adapters.checks.selfcheck import disproved, selfcheck
from raison.models.adapters.classifier import Classifier
from raison.models.passes.outputs.readout import WordReadout
from raison.text.prompts import Prompt
from tests.contracts.conftest import TEXTS
from tests.reused import reused
from tests.tiny import LANGUAGE_MODELS, build_language_model

ONE = {"good": " good", "bad": " bad"}
SEVERAL = {"good": " a pleasure", "bad": " dull", "mixed": " loud"}
SHOTS = (("good end", "good"), ("dull", "bad"))
CLOSE = {"atol": 1e-4, "rtol": 0}


def prompt(labels: dict[str, str] = ONE, scoring: str = "word") -> Prompt:
    return Prompt(
        name="film",
        task="What is it? Say it.",
        shot="{text} :{label}",
        labels=labels,
        shots=SHOTS,
        scoring=scoring,
    )


@pytest.fixture(params=LANGUAGE_MODELS)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["one token", "several tokens"])
def tiny(request: pytest.FixtureRequest, family: str) -> Iterator[Classifier]:
    """A tiny model of one family behind a prompt: see tests/reused.py."""

    def load() -> Classifier:
        labels, scoring = (ONE, "first") if request.param == "one token" else (SEVERAL, "word")
        loaded = raison.load(*build_language_model(family), prompt=prompt(labels, scoring))
        assert isinstance(loaded, Classifier)
        assert isinstance(loaded.readout, WordReadout)
        assert (max(map(len, loaded.readout.label_ids)) > 1) == (request.param == "several tokens")
        return loaded

    yield from reused(request, ("prompted", family, request.param), load)


def whole_pass(model: PreTrainedModel, ids: list[int], readout: WordReadout) -> torch.Tensor:
    """Logits of the classes by whole passes of the plain model, one per label, all positions computed."""
    single = all(len(label) == 1 for label in readout.label_ids)
    scores = []
    for label in readout.label_ids:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids + list(label)])).logits[0].double()
        answers = logits[len(ids) - 1 : len(ids) - 1 + len(label)]
        answers = answers if single else answers.log_softmax(-1)
        scores.append(sum(answers[step, token] for step, token in enumerate(label)))
    return torch.stack(scores)


def masked_ids(model: Classifier, encoding: object, text: int, keep: torch.Tensor, removal: str) -> list[int]:
    """A text's tokens under one keep, by a plain loop."""
    token = {"unk": model.tokenizer.unk_token_id, "pad": model.tokenizer.pad_token_id}.get(removal)
    found = []
    for position in range(encoding.lengths[text]):
        unit = int(encoding.unit_ids[text, position])
        if unit < 0 or keep[unit]:
            found.append(int(encoding.input_ids[text, position]))
        elif token is not None:
            found.append(token)
    return found


def random_keeps(counts: tuple[int, ...], rows: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(rows, count, generator=generator) < 0.5 for count in counts]


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("removal", ["unk", "pad", "delete"])
@pytest.mark.parametrize("explained", ["input", "prompt"])
def test_masked_probabilities_equal_whole_passes(family: str, removal: str, explained: str) -> None:
    for labels in (ONE, SEVERAL):
        tiny = raison.load(*build_language_model(family), prompt=prompt(labels), explained=explained)
        encoding = tiny.encode(TEXTS, "word")
        assert (encoding.prefix_length > 0) == (explained == "input")
        keeps = random_keeps(encoding.unit_counts, 3)
        for text, found in enumerate(tiny.masked_logits(encoding, keeps, removal)):
            for keep, logits in zip(keeps[text], found, strict=True):
                ids = masked_ids(tiny, encoding, text, keep, removal)
                literal = whole_pass(tiny.model, ids, tiny.readout)
                torch.testing.assert_close(logits.double().softmax(-1), literal.softmax(-1), **CLOSE)
                torch.testing.assert_close(logits.double(), literal, atol=1e-3, rtol=1e-4)
            assert found.std(0).max() > 1e-2, "a model that ignores its input would pass"


def test_predictions_do_not_depend_on_the_padding_side_or_the_batch(tiny: Classifier) -> None:
    left = copy.deepcopy(tiny.tokenizer)
    left.padding_side = "left"
    other = raison.load(copy.deepcopy(tiny.model), left, prompt=tiny.use.encoder.prompt)
    keeps = random_keeps(tiny.encode(TEXTS, "word").unit_counts, 2)
    together = tiny.masked_logits(tiny.encode(TEXTS, "word"), keeps, "unk")
    with torch.no_grad():
        plain = tiny.ask(Passes).logits(tiny.encode(TEXTS, "word"))
        torch.testing.assert_close(other.ask(Passes).logits(other.encode(TEXTS, "word")), plain, **CLOSE)
    for text, rows in enumerate(together):
        encoding = other.encode([TEXTS[text]], "word")
        alone = torch.cat([other.masked_logits(encoding, [keep[None]], "unk")[0] for keep in keeps[text]])
        torch.testing.assert_close(alone, rows, **CLOSE)
        with torch.no_grad():
            torch.testing.assert_close(other.ask(Passes).logits(encoding)[0], plain[text], **CLOSE)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("removal", ["unk", "delete"])
def test_steps_are_predictions_on_texts_that_end_there(tiny: Classifier, removal: str) -> None:
    """With the answer cue put after each unit."""
    encoding = tiny.encode(TEXTS, "word")
    keeps = random_keeps(encoding.unit_counts, 1)
    for text, found in enumerate(tiny.ask(StepLogits).step_logits(encoding, keeps, removal)):
        unit_ids = encoding.unit_ids[text, : encoding.lengths[text]].tolist()
        after = max(position for position, unit in enumerate(unit_ids) if unit >= 0) + 1
        cue = encoding.input_ids[text, after : len(unit_ids)].tolist()
        for keep, steps in zip(keeps[text], found, strict=True):
            for unit, logits in enumerate(steps):
                seen = keep & (torch.arange(len(keep)) <= unit)
                last = max(position for position, owner in enumerate(unit_ids) if owner == unit)
                shorter = encoding.select([text])
                shorter.unit_ids[0, after:] = -1
                ids = [
                    token
                    for position, token in enumerate(encoding.input_ids[text, : last + 1].tolist())
                    if unit_ids[position] < 0 or seen[unit_ids[position]]
                ]
                if removal == "unk":
                    ids = [
                        token if unit_ids[position] < 0 or seen[unit_ids[position]] else tiny.tokenizer.unk_token_id
                        for position, token in enumerate(encoding.input_ids[text, : last + 1].tolist())
                    ]
                literal = whole_pass(tiny.model, ids + cue, tiny.readout).softmax(-1)
                torch.testing.assert_close(logits.double().softmax(-1), literal, **CLOSE)
        whole = tiny.masked_logits(encoding, keeps, removal)[text]
        torch.testing.assert_close(found[:, -1], whole, **CLOSE)


def test_the_start_is_the_answer_to_an_empty_text(tiny: Classifier) -> None:
    encoding = tiny.encode(TEXTS, "word")
    for text, logits in enumerate(tiny.ask(StepLogits).start_logits(encoding)):
        ids = [
            token
            for token, unit in zip(encoding.input_ids[text].tolist(), encoding.unit_ids[text].tolist(), strict=True)
            if unit < 0
        ][: encoding.lengths[text] - int((encoding.unit_ids[text] >= 0).sum())]
        torch.testing.assert_close(logits.double(), whole_pass(tiny.model, ids, tiny.readout), atol=1e-3, rtol=1e-4)


def test_gradients_through_the_cached_prompt_equal_whole_ones(tiny: Classifier) -> None:
    encoding = tiny.encode(TEXTS, "word")
    embeds = tiny.ask(WordEmbeddings).embed(encoding)
    target = Target(torch.zeros(len(TEXTS), dtype=torch.long), None, "log_odds")
    one = torch.ones(1)
    sums, values = tiny.ask(WordEmbeddings).path_gradients(
        encoding, lambda text, _points: embeds[text][None], one, one, target
    )
    with torch.enable_grad():
        leaf = embeds.clone().requires_grad_()
        whole = target.scalar(tiny.ask(Passes).logits(encoding, leaf))
        (gradient,) = torch.autograd.grad(whole.sum(), leaf)
    torch.testing.assert_close(values[:, 0].float(), whole.detach(), atol=1e-4, rtol=1e-4)
    for text, found in enumerate(sums):
        start, end = encoding.prefix_length, encoding.lengths[text]
        assert not found[:start].any(), "the prompt is a constant"
        torch.testing.assert_close(found[start:], gradient[text, start:end], atol=1e-4, rtol=1e-3)


def test_the_tap_sees_the_text_and_its_prompt(tiny: Classifier) -> None:
    encoding = tiny.encode(TEXTS, "word")
    with torch.no_grad(), tiny.ask(ReadableAttention).tap() as tap:
        tiny.ask(Passes).logits(encoding)
    width = encoding.input_ids.shape[1]
    assert all(layer.shape[-2:] == (width, width) for layer in tap.probabilities.values())
    for text, length in enumerate(encoding.lengths):
        with torch.no_grad(), tiny.ask(ReadableAttention).tap() as alone:
            tiny.model(input_ids=encoding.input_ids[text : text + 1, :length])
        for layer, found in alone.probabilities.items():
            torch.testing.assert_close(tap.probabilities[layer][text, :, :length, :length], found[0], **CLOSE)


@pytest.mark.in_turn(2)
def test_selfcheck_confirms_the_capabilities(tiny: Classifier) -> None:
    findings = selfcheck(tiny, TEXTS[0])
    assert all(finding.passed for finding in findings), findings
    assert not disproved(findings)
    assert tiny.offers(StepLogits)
    assert tiny.offers(WordEmbeddings)


def test_a_shift_of_the_embeddings_reaches_the_prompt(tiny: Classifier) -> None:
    encoding = tiny.encode(TEXTS, "word")
    whole = [torch.ones(1, count, dtype=torch.bool) for count in encoding.unit_counts]
    before = torch.cat(tiny.masked_logits(encoding, whole, "unk"))
    with tiny.ask(WordEmbeddings).shifted(Shift(0.3, 0)), torch.no_grad():
        moved, plain = torch.cat(tiny.masked_logits(encoding, whole, "unk")), tiny.ask(Passes).logits(encoding)
    torch.testing.assert_close(moved, plain, atol=1e-3, rtol=1e-4)
    assert (moved - before).abs().max() > 1e-2
    torch.testing.assert_close(torch.cat(tiny.masked_logits(encoding, whole, "unk")), before)


def test_calibration_makes_inputs_without_content_undecided(family: str) -> None:
    model, tokenizer = build_language_model(family)
    plain = raison.load(model, tokenizer, prompt=prompt())
    calibrated = raison.load(model, tokenizer, prompt=prompt(), calibrate=True)
    inputs = ["N/A", "[MASK]", "..."]
    with torch.no_grad():
        logits = plain.ask(Passes).logits(plain.encode(inputs, "token"))
        prior = logits.softmax(-1).mean(0)
        own = plain.ask(Passes).logits(plain.encode(TEXTS)).softmax(-1)
        found = calibrated.ask(Passes).logits(calibrated.encode(TEXTS)).softmax(-1)
    literal = own / prior
    torch.testing.assert_close(found, literal / literal.sum(-1, keepdim=True), **CLOSE)
    assert (found - own).abs().max() > 1e-3


def test_removing_a_shot_removes_its_tokens_alone(family: str) -> None:
    tiny = raison.load(*build_language_model(family), prompt=prompt(), explained="prompt")
    (explanation,) = raison.explain(tiny, [TEXTS[1]], "occlusion")
    texts = [unit.text for unit in explanation.units]
    assert texts == ["What is it?", "Say it.", "good end : good", "dull : bad", "dull"]
    assert all(explanation.text[unit.start : unit.end] == unit.text for unit in explanation.units)
    # Mistral's window of four tokens and three layers ends after the last shot.
    near = explanation.scores[3 if family == "mistral" else 0 :]
    assert len(set(near)) == len(near)
    assert all(near)


def test_an_encoder_takes_no_prompt_and_a_prompt_no_encoder() -> None:
    from tests.tiny import build

    with pytest.raises(InputError, match=r"a prompt is for causal language models"):
        raison.load(*build("bert"), prompt=prompt())
    with pytest.raises(InputError, match="need a prompt"):
        raison.load(*build_language_model("gpt2"), calibrate=True)
    with pytest.raises(InputError, match="Did you mean 'sst2'"):
        raison.load(*build_language_model("gpt2"), prompt="ssst2")


def test_label_words_of_one_beginning_need_whole_words(family: str) -> None:
    same = {"good": " a quiet pleasure", "bad": " a quiet one"}
    with pytest.raises((LoadError, InputError), match=r"score them whole"):
        raison.load(*build_language_model(family), prompt=prompt(same, "first"))
    loaded = raison.load(*build_language_model(family), prompt=prompt(same))
    assert loaded.classes == ("good", "bad")
