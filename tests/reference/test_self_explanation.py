import pytest
import torch

import raison
from raison.core.errors import InputError, TextTooLongError, UnsupportedError
from raison.methods.self_explanation import SelfExplanation
from raison.models.adapters.offered import self_report
from raison.models.adapters.offered.self_report import Reply
from raison.text.prompts import Prompt
from tests.tiny import build, build_answering, build_language_model
from tests.toys import Linear

TEXT = "a quiet film"
PROMPT = Prompt(
    name="plot",
    task="Say how it was.",
    shot="Plot: {text}\nIt was{label}",
    labels={"good": " good", "bad": " bad"},
    scoring="first",
)


def prompted(positions=4096, template=None):
    """A tiny Llama with room for the question: its positions are angles, so any number will do."""
    model, tokenizer = build_language_model("llama")
    model.config.max_position_embeddings = positions
    tokenizer.chat_template = template
    return raison.load(model, tokenizer, prompt=PROMPT)


@pytest.fixture
def said(monkeypatch):
    """Puts answers in the model's mouth, by what stands in a question; holds the questions."""

    def put(**answers):
        asked = []

        def ask(_writer, question, new_tokens):
            asked.append((question, new_tokens))
            (answer,) = [own for word, own in answers.items() if word in question]
            return Reply(answer, 7, False)

        monkeypatch.setattr("raison.methods.self_explanation.ask", ask)
        return asked

    return put


def test_scores_are_those_that_the_answer_says(said):
    asked = said(List="1. film\n2. great\n3. a", Score="2. quiet: -0.5\n3. film: 1")
    model = prompted()
    ranked = raison.explain(model, TEXT, SelfExplanation(new_tokens=40), target="bad")
    assert ranked.scores == pytest.approx((2 / 3, 0, 1))
    assert ranked.notes == {
        "invented": pytest.approx(1 / 3),
        "missing": pytest.approx(1 / 3),
        "repeated": 0,
        "unreadable": 0,
        "cut": False,
    }
    assert ranked.evaluations == 7
    question, new_tokens = asked[0]
    assert new_tokens == 40
    assert "The classes are: good, bad." in question
    assert question.endswith("Text: a quiet film\nWords: a, quiet, film\nClass: bad\nRanking:")
    scored = raison.explain(model, TEXT, "self_explanation(form='score')", target=("good", "bad"))
    assert scored.scores == (0, -0.5, 1)
    assert asked[1][0].endswith("Words:\n1. a\n2. quiet\n3. film\nClass: good, not bad\nScores:")


def test_an_answer_without_a_unit_is_an_error_that_shows_it(said):
    said(quiet="1. film", dull="I am only a language model.")
    model = prompted()
    with pytest.raises(UnsupportedError, match="begins 'I am only a language model.'.*unreadable='zeros'"):
        raison.explain(model, [TEXT, "a dull plot"], "self_explanation")
    first, second = raison.explain(model, [TEXT, "a dull plot"], "self_explanation(unreadable='zeros')")
    assert first.scores == (0, 0, 1)
    assert "caution" not in first.notes
    assert second.scores == (0, 0, 0)
    assert second.notes["missing"] == 1
    assert "names no unit" in second.notes["caution"]


@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
def test_every_unit_is_asked_for(said, unit):
    model, text = prompted(), "A dull plot. The end is good."
    units = [part.text for part in model.encode([text], unit).units[0]]
    asked = said(List="\n".join(f"{rank}. {' '.join(own.split())}" for rank, own in enumerate(units, start=1)))
    found = raison.explain(model, text, "self_explanation", unit=unit)
    # Equal units are taken in the order of the text, in which they are listed here.
    named = [number for number, own in enumerate(units) if own.strip()]
    expected = [(len(units) - named.index(n)) / len(units) if n in named else 0 for n in range(len(units))]
    assert found.scores == pytest.approx(expected)
    assert f"\n{unit.capitalize()}s: " in asked[0][0]


def by_hand(model, ids, count):
    """Greedy decoding without a cache: the likeliest token after the whole text, again and again."""
    end = model.tokenizer.eos_token_id
    ids, written = list(ids), []
    for _ in range(count):
        with torch.no_grad():
            token = int(model.core(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
        if token == end:
            break
        ids.append(token)
        written.append(token)
    return written


def test_a_tiny_model_answers_nonsense_and_is_quoted():
    """The whole way, with nothing put in its place: question, greedy answer, reading."""
    model = prompted()
    explanation = raison.explain(model, TEXT, SelfExplanation(new_tokens=12, unreadable="zeros"))
    assert explanation.scores == (0, 0, 0)
    assert explanation.notes["missing"] == 1
    assert 1 <= explanation.evaluations <= 12
    with pytest.raises(UnsupportedError, match="cannot read the self-explanation of") as caught:
        raison.explain(model, TEXT, SelfExplanation(new_tokens=12))
    writer = self_report.writer_of(model, "self_explanation")
    reply = self_report.ask(writer, "Which word?", 12)
    prompt = writer.tokenizer("Which word?\n\nAnswer:\n").input_ids
    if prompt[-1] == writer.tokenizer.eos_token_id:
        prompt = prompt[:-1]
    written = by_hand(model, prompt, 12)
    assert reply.cut == (len(written) == 12)
    assert reply.passes == len(written) + (not reply.cut)
    decoded = writer.tokenizer.decode([*prompt, *written], clean_up_tokenization_spaces=False)
    assert decoded.endswith(reply.text)
    assert reply.text
    assert "begins '" in str(caught.value) or 'begins "' in str(caught.value)


def test_a_chat_template_is_used_where_there_is_one():
    template = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</{% endfor %}<assistant>"
    model = prompted(template=template)
    writer = self_report.writer_of(model, "self_explanation")
    prompts = []
    own = writer.continuation
    writer.continuation = lambda prompt, room: (prompts.append(prompt.text), own(prompt, room))[1]
    self_report.ask(writer, "Which word?", 3)
    assert prompts == ["<user>Which word?</<assistant>"]


def test_an_answer_has_no_more_tokens_than_there_is_room():
    model = prompted(positions=60)
    writer = self_report.writer_of(model, "self_explanation")
    length = len(writer.prompt("Which word?\n\nAnswer:\n").ids)
    reply = self_report.ask(writer, "Which word?", 500)
    # The last token is not read.
    assert reply.passes <= 60 - length + 1
    with pytest.raises(TextTooLongError):
        self_report.ask(writer, "Which word? " * 60, 5)


@pytest.mark.parametrize("model", [Linear, lambda: raison.load(*build("gpt2"))])
def test_a_model_that_cannot_be_asked_is_refused(model):
    with pytest.raises(UnsupportedError, match="it cannot answer questions.*with a prompt.*or use kernel_shap"):
        SelfExplanation().check(model())


def test_a_model_that_answers_with_a_span_is_refused():
    with pytest.raises(UnsupportedError, match="it cannot answer questions"):
        SelfExplanation().check(raison.load(*build_answering("bert")))


def test_settings_and_cost():
    assert SelfExplanation(new_tokens=9).cost(100).forwards == 9
    with pytest.raises(InputError, match="new_tokens of self_explanation cannot be 0"):
        SelfExplanation(new_tokens=0)
