"""Chats through a tokenizer's own template: which characters are whose."""

import copy
from collections.abc import Sequence
from typing import Any

import jaxtyping
import pytest

from raison.core.errors import InputError
from raison.core.inputs.chat import Chat
from raison.models.tokens.chats import chat_prompt
from raison.models.tokens.continuation import TokenizedPrompt
from tests.tokenizers import TOKENIZERS

PLAIN = (
    "{% for message in messages %}[{{ message['role'] }}] {% if message['content'] is string %}"
    "{{ message['content'] | trim }}{% else %}{% for part in message['content'] %}{{ part['text'] }};{% endfor %}"
    "{% endif %}\n{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}"
)
WITH_DOCUMENTS = "{% for d in documents %}({{ d['title'] }}) {{ d['text'] }}\n{% endfor %}" + PLAIN
USER = {"role": "user", "content": "Is the sea wet?"}


def prompt(chat: Chat, template: str = PLAIN) -> TokenizedPrompt:
    tokenizer = copy.deepcopy(TOKENIZERS["gpt2"]())
    tokenizer.chat_template = template
    return chat_prompt(tokenizer, chat)


def parts(found: TokenizedPrompt) -> list[tuple[str, str]]:
    assert all(found.text[part.start : part.end] == part.text for part in found.parts)
    return [(part.name, part.text) for part in found.parts]


def test_messages_are_parts_named_by_their_roles() -> None:
    found = prompt(Chat([{"role": "system", "content": " One word. "}, USER]))
    assert parts(found) == [("system", "One word."), ("user", "Is the sea wet?")]
    assert [found.text[start:end] for start, end in found.regions] == ["One word.", "Is the sea wet?"]
    units, owners = found.units("part")
    assert [unit.name for unit in units] == ["system", "user"]
    assert {-1, 0, 1} == set(owners)


def test_results_of_tools_and_lists_of_texts_are_parts() -> None:
    calls = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "look", "arguments": {}}}]}
    listed = {"role": "user", "content": [{"type": "text", "text": "First."}, {"type": "text", "text": "Second."}]}
    template = PLAIN.replace("{% for part in message['content'] %}", "{% for part in message['content'] or [] %}")
    found = prompt(Chat([USER, calls, {"role": "tool", "name": "look", "content": "12 km"}, listed]), template)
    assert parts(found) == [
        ("user", "Is the sea wet?"),
        ("tool look", "12 km"),
        ("user", "First."),
        ("user", "Second."),
    ]


def test_documents_are_parts_wherever_the_template_puts_them() -> None:
    documents = [{"title": "Seas", "text": "The sea is wet."}, {"title": "", "text": "Sand is dry."}]
    found = prompt(Chat([USER], documents), WITH_DOCUMENTS)
    assert parts(found) == [
        ("Seas", "Seas) The sea is wet."),
        ("document 2", "Sand is dry."),
        ("user", "Is the sea wet?"),
    ]
    units, _ = found.units("word")
    assert "Seas" in [unit.text for unit in units]
    assert ")" not in [unit.text for unit in units]


@pytest.mark.parametrize(
    ("messages", "documents", "said"),
    [
        ([USER], [{"title": "Seas", "text": "Wet."}], "leaves out 'title' of the documents: put them into a message"),
        ([USER], [{"title": 3}], "is not a document"),
        ([], [], "no messages"),
        ([{"role": "user"}], [], "is not a chat message"),
        ([{"role": "user", "content": None}], [], "is not a chat message"),
        ([{"role": "user", "content": [{"type": "image"}]}], [], "is not a chat message"),
        ([{"content": "x"}], [], "is not a chat message"),
        (["x"], [], "is not a chat message"),
        ([{"role": "user", "content": " "}], [], "empty or blank"),
    ],
)
def test_what_is_no_chat(messages: Sequence[Any], documents: Sequence[Any], said: str) -> None:
    # Elsewhere than in tests nothing checks the types of what callers give.
    jaxtyping.config.update("jaxtyping_disable", True)
    with pytest.raises(InputError, match=said):
        prompt(Chat(messages, documents))


def test_a_template_that_changes_what_it_shows_is_refused() -> None:
    with pytest.raises(InputError, match="changes the messages"):
        prompt(Chat([USER]), PLAIN.replace("| trim", "| upper"))
    with pytest.raises(InputError, match="no chat template"):
        chat_prompt(TOKENIZERS["gpt2"](), Chat([USER]))


def test_tools_that_the_template_leaves_out_are_refused() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    with pytest.raises(InputError, match="leaves out the tools"):
        prompt(Chat([USER], tools=[tool]))
    found = prompt(
        Chat([USER], tools=[tool]), "{% for t in tools or [] %}<{{ t['function']['name'] }}>{% endfor %}" + PLAIN
    )
    assert found.text.startswith("<look>")
    assert parts(found) == [("user", "Is the sea wet?")]


@pytest.mark.parametrize("end", [" ", "\n", "\n\n", " \n"])
def test_white_space_that_a_template_strips_before_its_own(end: str) -> None:
    strips = "{% for message in messages %}{{ message['content'] | trim }}{{ '\n' }}{% endfor %}{{ '[assistant]' }}"
    messages = [{"role": "system", "content": f"One word.{end}"}, USER | {"content": f"Is the sea wet?{end}"}]
    for template, kept in ((strips, ""), (strips.replace(" | trim", ""), end)):
        found = prompt(Chat(messages), template)
        assert parts(found) == [("system", "One word."), ("user", "Is the sea wet?")]
        assert found.text == f"One word.{kept}\nIs the sea wet?{kept}\n[assistant]"
        assert found.regions == ((0, 9 + len(kept)), (10 + len(kept), 25 + 2 * len(kept)))
