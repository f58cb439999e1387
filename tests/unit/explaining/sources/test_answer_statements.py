"""The answer that is explained: the one that was given, or the model's own."""

import pytest

import raison
from raison.models.adapters.writing.generator import Generator
from raison.text.sourced import SourceTemplate
from tests.tiny import build_language_model

SOURCES = {"sea": "the old sailor told a story about the sea.", "plot": "a dull plot. nobody believed him."}


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt2"])
def test_the_model_s_own_answer_keeps_its_tokens_up_to_the_stop(family):
    """Tokenized again, it would be an answer that the model hardly ever writes."""
    writer = Generator(*build_language_model(family), family)
    given = {"max_new_tokens": 9, "draws": 0, "method": "random"}
    whole = raison.cite(writer, "who?", SOURCES, template=SourceTemplate("s", "{sources} {question}"), **given)
    prompt = writer.prompt(whole.prompt)
    own = writer.continuation(prompt, 9)
    starts = [start - len(prompt.text) for start, _ in own.spans]
    place = next(start for start in starts if own.text[:start].strip() and own.text[start] not in own.text[:start])
    template = SourceTemplate("s", "{sources} {question}", stop=own.text[place])
    stopped = raison.cite(writer, "who?", SOURCES, template=template, **given)
    assert stopped.answer_ids == own.ids[: starts.index(place)]
    assert stopped.answer == own.text[:place].strip()
