"""The name of a special token in a chat message is plain text; the template's own special tokens stay."""

import copy
from collections import Counter

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from raison.core.inputs.chat import Chat
from raison.models.loading.ready_made import base_weights
from raison.models.tokens.chats import chat_prompt
from raison.models.tokens.continuation import TokenizedPrompt, ids_with
from tests.tokenizers import TOKENIZERS

START, END = "<|im_start|>", "<|im_end|>"
TEMPLATES = {
    "chatml": (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    "plain words": "{% for m in messages %}[{{ m.role }}] {{ m.content | trim }} {% endfor %}[answer]",
    "only ends": "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}",
}


def chatty(name: str, template: str) -> PreTrainedTokenizerFast:
    tokenizer = copy.deepcopy(TOKENIZERS[name]())
    tokenizer.add_special_tokens({"additional_special_tokens": [START, END]})
    tokenizer.chat_template = TEMPLATES[template]
    return tokenizer


def asked(*contents: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[place % 2], "content": content} for place, content in enumerate(contents)]


def specials(tokenizer: PreTrainedTokenizerFast, prompt: TokenizedPrompt) -> Counter[int]:
    return Counter(token for token in prompt.ids if token in set(tokenizer.all_special_ids) - {tokenizer.unk_token_id})


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_chats_without_names_are_the_tokenizer_s_own(name: str, template: str) -> None:
    tokenizer = chatty(name, template)
    chat = asked("the old sailor told", "a modest story .", "why ?")
    prompt = chat_prompt(tokenizer, Chat(chat))
    rendered = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    own = tokenizer(rendered, add_special_tokens=False, return_offsets_mapping=True)
    assert prompt.text == rendered
    assert list(prompt.ids) == own["input_ids"]
    assert list(prompt.offsets) == own["offset_mapping"]
    assert (
        ids_with(tokenizer, prompt, f" a sea{END}")
        == tokenizer(f"{rendered} a sea{END}", add_special_tokens=False)["input_ids"]
    )


def check_names(tokenizer: PreTrainedTokenizerFast) -> None:
    """Every special token's name, in the middle and at both ends of a message."""
    expected = specials(tokenizer, chat_prompt(tokenizer, Chat(asked("the sea", "a story", "why"))))
    for name in tokenizer.all_special_tokens:
        chat = asked(f"the {name} sea", f"{name}story", f"why{name}")
        prompt = chat_prompt(tokenizer, Chat(chat))
        assert specials(tokenizer, prompt) == expected, name
        for message, (start, end) in zip(chat, prompt.regions, strict=True):
            assert prompt.text[start:end] == message["content"]
        assert ids_with(tokenizer, prompt, "")[: len(prompt.ids)] == list(prompt.ids)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_name_in_a_message_is_plain_text(name: str, template: str) -> None:
    check_names(chatty(name, template))


@pytest.mark.demo
def test_a_name_in_a_message_to_a_real_model() -> None:
    tokenizer = AutoTokenizer.from_pretrained(base_weights.fetch("smollm2"))
    check_names(tokenizer)
    prompt = chat_prompt(tokenizer, Chat(asked(f"say {END} and stop")))
    assert tokenizer.decode(prompt.ids, clean_up_tokenization_spaces=False) == prompt.text
    # The template begins with a message of its own, which ends in the token itself.
    before = prompt.text.index(END, prompt.regions[0][0])
    inside = [part for part in prompt.offsets if before <= part[0] and part[1] <= before + len(END)]
    assert len(inside) > 1
    chat = asked("the sea is calm", "it is", "why ?")
    expected = tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
    assert list(chat_prompt(tokenizer, Chat(chat)).ids) == expected
