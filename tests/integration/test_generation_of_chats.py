"""Explaining what a language model answers to the messages of a chat."""

import pytest
import torch

import raison
from raison.core import errors
from raison.core.inputs.chat import Chat
from raison.models.adapters.writing.generator import Generator
from raison.models.tokens.chats import chat_prompt
from tests.tiny import CHAT_TEMPLATE, build_language_model


def chatty(template=CHAT_TEMPLATE):
    model, tokenizer = build_language_model("llama")
    tokenizer.chat_template = template
    return Generator(model, tokenizer, "tiny")


def test_chat_scores_only_what_the_messages_say():
    generator = chatty()
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": " the sea? "},
        {"role": "assistant", "content": "the sea."},
        {"role": "user", "content": "user"},
    ]
    found = raison.explain(generator, messages, "occlusion", output="calm")
    rendered = generator.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert found.prompt == rendered
    assert [unit.text for unit in found.units] == ["be", "brief", "the", "sea", "?", "the", "sea", ".", "user"]
    assert all(rendered[unit.start : unit.end] == unit.text for unit in found.units)
    assert found.units[-1].start == rendered.rindex("user"), "the word, not the name of the role"
    ids = generator.tokenizer(rendered + "calm", add_special_tokens=False)["input_ids"]
    prompt = generator.tokenizer(rendered, add_special_tokens=False)["input_ids"]
    assert [token.id for token in found.tokens] == ids[len(prompt) :]
    with torch.no_grad():
        logits = generator.model(torch.tensor([ids])).logits[0].log_softmax(-1)
    expected = sum(float(logits[len(prompt) - 1 + n, token]) for n, token in enumerate(ids[len(prompt) :]))
    assert found.log_probability == pytest.approx(expected, abs=1e-3)


def test_sentences_of_a_chat_hold_no_markers():
    found = raison.explain(
        chatty(), [{"role": "user", "content": "It was slow. Was it?"}], "occlusion", output="no", unit="sentence"
    )
    assert [unit.text for unit in found.units] == ["It was slow.", "Was it?"]


def test_templates_that_rewrite_messages_are_refused():
    for template in (
        "{% for m in messages %}<{{ m['content'] | upper }}>{% endfor %}",
        "{% for m in messages %}<{{ m['content'] }}{{ m['content'] }}>{% endfor %}",
        "<nothing>",
    ):
        with pytest.raises(errors.InputError, match="chat template changes the messages"):
            raison.explain(chatty(template), [{"role": "user", "content": "slow"}], "occlusion", output="no")


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([{"role": "user"}], "'role' and 'content'"),
        ([{"role": "user", "content": " "}], "empty or blank"),
    ],
)
def test_bad_chats(messages, said):
    with pytest.raises(errors.InputError, match=said):
        chat_prompt(chatty().tokenizer, Chat(messages))
