"""Texts in a prompt: the tokens that the model would really see, whose they are, and the label words behind them."""

import copy
from dataclasses import replace

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from raison.core.errors import InputError, TextTooLongError
from raison.core.inputs.unit import SPLITS, Granularity
from raison.models.loading.ready_made import base_weights
from raison.models.tokens.prompting import PromptEncoder
from raison.text import prompts
from raison.text.prompts import Prompt
from tests.prompted import DAY, EXACT, PLAIN, TEXTS, encode, encoder, own_ids, tokens_of
from tests.tokenizers import TOKENIZERS


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", PLAIN)
def test_the_whole_string_is_tokenized_once(name: str, text: str) -> None:
    encoding = encode(name, text)
    string = DAY.render(None).around(text)
    assert encoding.input_ids[0].tolist() == own_ids(TOKENIZERS[name](), string)
    assert (encoding.texts, encoding.truncated) == ((text,), (0,))
    if name in EXACT:
        decoded = TOKENIZERS[name]().decode(encoding.input_ids[0], clean_up_tokenization_spaces=False)
        assert decoded.removeprefix("<s>") == string


@pytest.mark.parametrize("unit", SPLITS)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", PLAIN)
def test_units_and_offsets_are_of_the_text_alone(name: str, text: str, unit: Granularity) -> None:
    encoding = encode(name, text, unit)
    covered = set()
    for token, number in enumerate(encoding.unit_ids[0].tolist()):
        start, end = encoding.offsets[0, token].tolist()
        if number == -1:
            assert (start, end) == (0, 0)
            continue
        assert 0 <= start <= end <= len(text)
        covered |= set(range(start, end))
        found, held = encoding.units[0][number], text[start:end]
        assert not held.strip() or found.start <= start + len(held) - len(held.lstrip())
        assert not held.strip() or start + len(held.rstrip()) <= found.end
    assert {place for place, character in enumerate(text) if not character.isspace()} <= covered
    assert all(found.text == text[found.start : found.end] for found in encoding.units[0])
    scored = encoding.scored[0].nonzero()[:, 0].tolist()
    assert scored == list(range(scored[0], scored[-1] + 1))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("text", TEXTS)
def test_the_other_tokens_are_the_prompt_s(name: str, text: str) -> None:
    encoding, rendered = encode(name, text), DAY.render(None)
    scored = encoding.scored[0].nonzero()[:, 0]
    ids = encoding.input_ids[0]
    decode = TOKENIZERS[name]().decode
    before = decode(ids[: scored[0]], clean_up_tokenization_spaces=False).removeprefix("<s>")
    behind = decode(ids[scored[-1] + 1 :], clean_up_tokenization_spaces=False)
    # A token of the border holds the space in front of the text.
    assert before in (rendered.before, rendered.before.rstrip(" "))
    assert behind == rendered.after


def test_words_are_the_units() -> None:
    assert [unit.text for unit in encode("gpt2", "a modest story").units[0]] == ["a", "modest", "story"]


@pytest.mark.parametrize("name", ["gpt2", "gpt2_untrimmed"])
def test_a_token_that_reaches_from_the_prompt_into_the_text_is_the_text_s(name: str) -> None:
    prompt = Prompt(name="cut", query="We saw th{text}he sea:", labels=DAY.labels)
    encoding = encode(name, "e old man and t", "word", prompt=prompt)
    scored = encoding.scored[0].nonzero()[:, 0].tolist()
    tokens = tokens_of(name, encoding.input_ids[0, scored].tolist())
    assert (tokens[0], tokens[-1]) == ("Ġthe", "Ġthe")
    assert encoding.offsets[0, scored[0]].tolist() == [0, 1]
    assert encoding.offsets[0, scored[-1]].tolist()[1] == 15
    assert [unit.text for unit in encoding.units[0]] == ["e", "old", "man", "and", "t"]


def test_white_space_at_the_borders_keeps_its_side() -> None:
    encoding = encode("gpt2", "fine  ", "token")
    ids = encoding.input_ids[0][encoding.scored[0]].tolist()
    assert TOKENIZERS["gpt2"]().decode(ids, clean_up_tokenization_spaces=False) == " fine  "
    assert TOKENIZERS["gpt2"]().decode(encoding.input_ids[0]).endswith("  \nIt was")


def test_special_tokens_open_the_prompt_and_never_end_it() -> None:
    for name, first in (("llama", "<s>"), ("roberta", "<s>"), ("bert", "[CLS]")):
        tokens = tokens_of(name, encode(name, "a modest story").input_ids[0].tolist())
        assert tokens[0] == first
        assert not {"</s>", "[SEP]"} & set(tokens)


def test_rows_are_padded_on_the_right_without_a_pad_token() -> None:
    made = encoder("llama")
    assert TOKENIZERS["llama"]().pad_token_id is None
    encoding = made.encode(["a modest story about the sea", "x"], "word", False)
    alone = made.encode(["x"], "word", False)
    length = alone.lengths[0]
    assert encoding.lengths[1] == length < encoding.lengths[0]
    for row, single in (
        (encoding.input_ids, alone.input_ids),
        (encoding.unit_ids, alone.unit_ids),
        (encoding.offsets, alone.offsets),
        (encoding.type_ids, alone.type_ids),
    ):
        assert row[1, :length].tolist() == single[0].tolist()
    assert (encoding.input_ids[1, length:] == made.pad_id).all()
    assert (encoding.unit_ids[1, length:] == -1).all()
    assert not encoding.attention_mask[1, length:].any()


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("texts", [["a modest story", "I love it"], ["a man", "a sea"], ["a modest story"]])
def test_the_shared_prefix_ends_at_the_first_unit_or_difference(name: str, texts: list[str]) -> None:
    encoding = encoder(name).encode(texts, "word", False)
    ids = [row[mask].tolist() for row, mask in zip(encoding.input_ids, encoding.attention_mask, strict=True)]
    first = min(row.tolist().index(True) for row in encoding.scored)
    same = max(length for length in range(first + 1) if len({tuple(row[:length]) for row in ids}) == 1)
    assert encoding.prefix_length == same
    assert encoding.prefix_length > 0.9 * len(own_ids(TOKENIZERS[name](), DAY.render(None).before)) - 2


def test_the_prefix_is_shorter_where_the_last_token_of_the_prompt_is_not_shared() -> None:
    prompt = Prompt(name="cut", query="We saw th{text}\nIt was", labels=DAY.labels)
    made = encoder("gpt2", prompt)
    both = made.encode(["e man", "x man"], "word", False)
    assert (
        tokens_of("gpt2", both.input_ids[0, : both.prefix_length].tolist())
        == tokens_of("gpt2", made.encode(["e man"], "word", False).input_ids[0].tolist())[: both.prefix_length]
    )
    assert TOKENIZERS["gpt2"]().decode(both.input_ids[0, : both.prefix_length]) == "We saw"


@pytest.mark.parametrize("unit", SPLITS)
@pytest.mark.parametrize("name", ["gpt2", "gpt2_untrimmed"])
def test_a_prompt_is_explained_in_its_parts(name: str, unit: Granularity) -> None:
    text = "a modest story"
    encoding, alone = encode(name, text, unit, "prompt"), encode(name, text, unit)
    (string,) = encoding.texts
    assert string == DAY.render(None).around(text)
    assert [found.text for found in encoding.units[0]] == [
        "Say how the story was.",
        "Be brief.",
        "Story: boring and slow\nIt was bad",
        "Story: a moving film\nIt was good",
        *(found.text for found in alone.units[0]),
    ]
    assert all(found.text == string[found.start : found.end] for found in encoding.units[0])
    assert encoding.prefix_length == 0
    decode = TOKENIZERS[name]().decode
    for number, found in enumerate(encoding.units[0][:4]):
        held = encoding.unit_ids[0] == number
        assert decode(encoding.input_ids[0][held]).strip() == found.text
        without = decode(encoding.input_ids[0][~held], clean_up_tokenization_spaces=False)
        assert without in (
            string[: found.start] + string[found.end :],
            string[: found.start].rstrip(" ") + string[found.end :],
        )
    assert decode(encoding.input_ids[0][encoding.unit_ids[0] >= 4]).strip() == text
    for (start, end), number in zip(encoding.offsets[0].tolist(), encoding.unit_ids[0].tolist(), strict=True):
        if number >= 0 and start < end:
            assert string[start:end].strip() in encoding.units[0][number].text


def test_a_text_that_is_too_long_says_the_numbers() -> None:
    made = encoder("gpt2", max_tokens=100)
    text = "the sea and " * 40
    string = DAY.render(None).around(text)
    total, own = len(own_ids(TOKENIZERS["gpt2"](), string)), len(own_ids(TOKENIZERS["gpt2"](), " " + text))
    reserve = max(len(ids) for ids in made.label_ids) - 1
    assert reserve > 0
    numbers = f"'day' has {total - own} tokens, the text {own}, and the model reads at most 100 \\(.* keeps {reserve} "
    with pytest.raises(TextTooLongError, match=f"text 2 of 2 is too long: the prompt {numbers}"):
        made.encode(["x", text], "word", False)


@pytest.mark.parametrize("explained", ["input", "prompt"])
@pytest.mark.parametrize("name", PLAIN)
def test_truncation_cuts_the_end_of_the_text_and_keeps_the_cue(name: str, explained: str) -> None:
    text = "the sea and 😀 the rain " * 60
    whole = encoder(name, explained=explained).encode([text], "word", False)
    limit = whole.lengths[0] // 2
    made = encoder(name, max_tokens=limit, explained=explained)
    encoding = made.encode([text], "word", True)
    assert made.max_tokens - 8 <= encoding.lengths[0] <= made.max_tokens
    assert encoding.truncated == (whole.lengths[0] - encoding.lengths[0],)
    last = int(encoding.offsets[0][encoding.scored[0]].max())
    start = len(DAY.render(None).before) if explained == "prompt" else 0
    shown = text[: last - start]
    kept = own_ids(TOKENIZERS[name](), DAY.render(None).around(shown))
    assert encoding.input_ids[0].tolist() == kept
    assert encoding.units[0][-1].end == start + len(shown.rstrip())
    assert encoding.texts == ((text,) if explained == "input" else (DAY.render(None).around(shown),))


def test_a_text_that_fits_is_not_cut() -> None:
    length = encode("gpt2", "a modest story").lengths[0]
    reserve = max(len(ids) for ids in encoder("gpt2").label_ids) - 1
    made = encoder("gpt2", max_tokens=length + reserve)
    assert made.encode(["a modest story"], "word", False).truncated == (0,)
    with pytest.raises(TextTooLongError):
        encoder("gpt2", max_tokens=length + reserve - 1).encode(["a modest story"], "word", False)


def test_a_prompt_that_leaves_no_room() -> None:
    with pytest.raises(InputError, match=r"the prompt 'day' has \d+ tokens, .* no text fits; use fewer"):
        encoder("gpt2", max_tokens=40)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([("one", "two")], "the text is a pair, and the prompt 'day' has one slot: join"),
        (["x", " \n"], "text 2 of 2 is empty or blank"),
        ([], "no text to explain"),
    ],
)
def test_texts_that_cannot_be_used(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoder("gpt2").encode(texts, "word", False)


def test_a_text_without_tokens() -> None:
    with pytest.raises(InputError, match="no token to explain"):
        encode("bert", "\u200b")


def test_the_callers_tokenizer_is_left_alone() -> None:
    tokenizer = copy.deepcopy(TOKENIZERS["gpt2"]())
    tokenizer.padding_side = "left"
    tokenizer("x", padding="max_length", truncation=True, max_length=7)
    state = tokenizer.backend_tokenizer.to_str()
    encoding = PromptEncoder(tokenizer, DAY, None, "input").encode(TEXTS[:2], "word", False)
    assert encoding.lengths[0] > 7
    assert encoding.attention_mask[:, 0].all()
    assert tokenizer.backend_tokenizer.to_str() == state


def with_template(template: str) -> PreTrainedTokenizerFast:
    tokenizer = copy.deepcopy(TOKENIZERS["llama"]())
    tokenizer.chat_template = template
    return tokenizer


TURNS = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[answer]"


def test_a_chat_template_writes_its_own_special_tokens() -> None:
    tokenizer = with_template(TURNS)
    encoding = PromptEncoder(tokenizer, replace(DAY, chat="message"), None, "input").encode(["a sea"], "word", False)
    ids = encoding.input_ids[0].tolist()
    assert (ids[0], ids.count(tokenizer.bos_token_id)) == (tokenizer.bos_token_id, 1)
    messages = [{"role": "user", "content": DAY.render(None).around("a sea")}]
    assert ids == tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    assert [unit.text for unit in encoding.units[0]] == ["a", "sea"]


def test_a_chat_template_that_refuses() -> None:
    template = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TURNS
    with pytest.raises(InputError, match="rejects the prompt's messages .no system.: use a prompt without `system`"):
        PromptEncoder(with_template(template), replace(DAY, chat="turns", system="Be kind."), None, "input")


def test_a_chat_without_template() -> None:
    with pytest.raises(InputError, match="the tokenizer has no chat template"):
        encoder("llama", replace(DAY, chat="turns"))


@pytest.fixture(scope="module")
def smollm2() -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(base_weights.fetch("smollm2"))


@pytest.mark.demo
@pytest.mark.parametrize("name", prompts.names())
def test_shipped_prompts_on_a_real_tokenizer(smollm2: PreTrainedTokenizerFast, name: str) -> None:
    made = PromptEncoder(smollm2, prompts.named(name), 2048, "input")
    text = "a fine, quiet film about nothing much"
    encoding = made.encode([text, "dull"], "word", False)
    string = made.rendered.around(text)
    assert smollm2.decode(encoding.input_ids[0], clean_up_tokenization_spaces=False) == string
    assert [unit.text for unit in encoding.units[0]] == ["a", "fine", ",", "quiet", "film", "about", "nothing", "much"]
    for ids, word in zip(made.label_ids, made.prompt.words, strict=True):
        assert smollm2.decode(list(ids)) == word
        assert len(ids) == 1


@pytest.mark.demo
def test_chat_prompts_are_the_tokenizer_s_own(smollm2: PreTrainedTokenizerFast) -> None:
    prompt = replace(DAY, chat="turns", shot="", query="Story: {text}", system="Answer with one word.")
    encoding = PromptEncoder(smollm2, prompt, None, "input").encode(["a calm sea"], "word", False)
    messages = [
        {"role": "system", "content": "Answer with one word."},
        {"role": "user", "content": "Say how the story was. Be brief.\n\nStory: boring and slow"},
        {"role": "assistant", "content": "bad"},
        {"role": "user", "content": "Story: a moving film"},
        {"role": "assistant", "content": "good"},
        {"role": "user", "content": "Story: a calm sea"},
    ]
    expected = smollm2.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    assert encoding.input_ids[0].tolist() == expected
