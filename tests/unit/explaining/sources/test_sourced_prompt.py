"""A conversation's sources: the results of tools and the documents, where they stand in the prompt."""

from typing import Any

import pytest

from raison.core.errors import InputError
from raison.core.inputs.chat import Chat
from raison.explaining.sources.sourced_prompt import SourcedPrompt, sourced_prompt
from raison.models.adapters.writing.generator import Generator
from raison.text.sourced import SourceTemplate
from tests.tiny import build_language_model

TEMPLATE = (
    "{% for d in documents or [] %}{{ d['title'] }} : {{ d['text'] }} . {% endfor %}"
    "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} . {% endfor %}"
)
USER = {"role": "user", "content": "is the sea calm , is it ?"}


@pytest.fixture(scope="module")
def writer() -> Generator:
    model, tokenizer = build_language_model("llama")
    tokenizer.chat_template = TEMPLATE
    return Generator(model, tokenizer, "tiny")


def tool(content: str, name: str = "look") -> dict[str, Any]:
    return {"role": "tool", "name": name, "content": content}


def found(prompt: SourcedPrompt) -> list[tuple[str | None, str, int]]:
    text = prompt.source.prompt.text
    return [(unit.name, text[unit.start : unit.end], unit.start) for unit in prompt.source.sources]


def test_a_result_is_not_looked_for_in_the_question(writer: Generator) -> None:
    prompt = sourced_prompt(writer, [USER, tool("the sea"), tool("calm")], None, None)
    text = prompt.source.prompt.text
    assert found(prompt) == [
        ("tool look (1)", "the sea", text.rindex("the sea")),
        ("tool look (2)", "calm", text.rindex("calm")),
    ]


def test_a_message_of_the_user_with_the_same_text_is_no_source(writer: Generator) -> None:
    prompt = sourced_prompt(writer, [{"role": "user", "content": "the sea"}, tool("the sea")], None, None)
    text = prompt.source.prompt.text
    assert text.count("the sea") == 2
    assert found(prompt) == [("tool look", "the sea", text.rindex("the sea"))]


def test_equal_results_are_two_sources(writer: Generator) -> None:
    prompt = sourced_prompt(writer, [USER, tool("calm"), tool("calm")], None, None)
    assert [(name, text) for name, text, _ in found(prompt)] == [("tool look (1)", "calm"), ("tool look (2)", "calm")]
    assert len({start for *_, start in found(prompt)}) == 2


def test_documents_without_their_titles(writer: Generator) -> None:
    documents = ({"title": "it", "text": "calm"}, {"title": "sea", "text": "the sea is calm"})
    prompt = sourced_prompt(writer, Chat((USER,), documents), None, None)
    assert [(name, text) for name, text, _ in found(prompt)] == [("it", "calm"), ("sea", "the sea is calm")]
    assert found(prompt)[0][2] == prompt.source.prompt.text.index(": calm") + 2


def test_numbered_names_are_unique(writer: Generator) -> None:
    prompt = sourced_prompt(writer, [USER, tool("calm", "x (1)"), tool("sea", "x"), tool("it", "x")], None, None)
    assert [name for name, *_ in found(prompt)] == ["tool x (1)", "tool x (2)", "tool x (3)"]


@pytest.mark.parametrize(("text", "how"), [("storm", "does not occur"), ("is", "occurs 3 times")])
def test_texts_that_the_caller_names_occur_once(writer: Generator, text: str, how: str) -> None:
    with pytest.raises(InputError, match=how):
        sourced_prompt(writer, [USER, {"role": "user", "content": "is it calm"}], {"a": text}, None)


def test_sources_may_be_a_list_with_ids(writer: Generator) -> None:
    given = [{"id": "a", "text": "the sea is calm"}, {"id": "b", "text": "the sea"}]
    template = "{sources} {question}"
    listed = sourced_prompt(writer, "is it?", given, template)
    assert listed == sourced_prompt(writer, "is it?", {one["id"]: one["text"] for one in given}, template)
    with pytest.raises(InputError, match="two sources have the id 'a'"):
        sourced_prompt(writer, "is it?", [given[0], given[0]], template)
    with pytest.raises(InputError, match="the source '1' is"):
        sourced_prompt(writer, "is it?", [{"text": 5}], template)  # type: ignore[list-item]


STRIPPING = "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] | trim }}</s>\n{% endfor %}<|assistant|>\n"


@pytest.mark.parametrize(
    ("prompt", "sources"),
    [
        ("{question}\n\n{sources}", {"one": "the sea", "two": "it is calm \n\n"}),
        ("{sources}\n\n{question}", {"one": "  \n the sea", "two": "it is calm"}),
    ],
)
def test_white_space_that_a_chat_template_strips_is_no_part_of_a_source(prompt: str, sources: dict[str, str]) -> None:
    """What stands there is the template's own: the end of the message, or its role."""
    model, tokenizer = build_language_model("llama")
    tokenizer.chat_template = STRIPPING
    template = SourceTemplate("own", prompt, chat=True)
    made = sourced_prompt(Generator(model, tokenizer, "tiny"), "what is it ?", sources, template)
    assert [(name, text) for name, text, _ in found(made)] == [("one", "the sea"), ("two", "it is calm")]
    text = made.source.prompt.text
    assert not any("<" in text[first:last] or ">" in text[first:last] for first, last in made.source.blocks)
    assert [one.text for one in made.source.sentences] == ["the sea", "it is calm"]


def test_a_template_that_changes_the_message_is_refused() -> None:
    model, tokenizer = build_language_model("llama")
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] | upper }}{% endfor %}"
    with pytest.raises(InputError, match="changes the messages, so their words cannot be found"):
        sourced_prompt(Generator(model, tokenizer, "tiny"), "what is it ?", {"one": "the sea"}, None)


def test_halves_of_a_character_are_joined_in_sources_and_questions(writer: Generator) -> None:
    halves, whole = "a sea \ud83d\ude00 .", "a sea \U0001f600 ."
    for question in (halves, [{"role": "user", "content": halves}, tool(halves)]):
        made = sourced_prompt(writer, question, {"one": halves} if isinstance(question, str) else None, None)
        assert whole in made.source.prompt.text
        assert "\ud83d" not in made.source.prompt.text + made.question
