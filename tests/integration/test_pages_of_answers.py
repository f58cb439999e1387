"""Explained answers in the terminal, on pages and in examples: marked where they stand, whatever the units are."""

import html
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.padding import Padding

from raison.core.errors import DataError
from raison.core.results.explanation import Explanation
from raison.core.targets.answer import Answer, ExplainedAnswer
from raison.report.explanations.html import page
from raison.report.explanations.layout import parts
from raison.report.explanations.terminal import explanation_text
from raison.report.pages.examples import CLOSE, OPEN, Example, beside, markdown, marks
from raison.report.style import phrases
from raison.report.style.terminal_text import plain
from tests.explained import of_words

QUESTION, CONTEXT = "Who bakes?", "A retired <b>baker</b>, Ilse Brandt, bakes."


def explained(said: str = "Ilse Brandt", predicted: str = "Ilse Brandt", **changes: Any) -> Explanation:
    words = of_words((QUESTION, CONTEXT))
    start, own = CONTEXT.index(said), CONTEXT.index(predicted)
    values: dict[str, Any] = {
        "scores": tuple(0.1 * (-1) ** number * (number + 1) for number in range(len(words.units))),
        "classes": (said, "other answers"),
        "probabilities": (0.36, 0.64),
        "target": "answer" if said == predicted else said,
        "value_full": 0.36,
        "value_empty": 0.1,
        "model": "toy",
        "evaluations": 8,
        "seconds": 0.1,
        "answer": ExplainedAnswer(
            start, start + len(said), said, 0.4, 0.9, Answer(own, own + len(predicted), predicted)
        ),
    }
    return replace(words, **(values | changes))


def test_json_there_and_back() -> None:
    e = explained("baker")
    assert Explanation.from_json(e.to_json()) == e
    assert e.prediction == "Ilse Brandt"
    classifier = replace(e, answer=None)
    assert "answer" not in classifier.to_dict()
    assert Explanation.from_json(classifier.to_json()) == classifier
    with pytest.raises(DataError, match="its answer is .*must be an object"):
        Explanation.from_dict(e.to_dict() | {"answer": {"start": 1}})


@pytest.mark.parametrize("said", ["Ilse Brandt", "Ilse", "Brandt, bakes", "randt, b", CONTEXT])
def test_parts_are_the_text_and_the_answer(said: str) -> None:
    e = explained(said, said)
    cut = re.split(r"(?<=\s)", CONTEXT)
    found = parts(e, 1, cut)
    assert ["".join(part.text for part in own) for own in found] == cut
    inside = [part for own in found for part in own if part.inside]
    assert "".join(part.text for part in inside) == said
    assert [part.opens for part in inside] == [True] + [False] * (len(inside) - 1)
    assert [part.closes for part in inside] == [False] * (len(inside) - 1) + [True]
    assert not any(part.inside for own in parts(e, 0, [QUESTION]) for part in own)


@pytest.mark.parametrize("said", ["Ilse Brandt", "randt, b", "<b>baker</b>"])
def test_the_page_boxes_the_answer(said: str) -> None:
    shown = page(explained(said, said))
    body = shown[shown.index('<p class="label">Context') : shown.index('<div class="legend">')]
    boxed = re.findall(r'<span class="answer[^"]*">([^<]*)</span>', body)
    assert html.unescape("".join(boxed)) == said
    assert body.count(" opens") == body.count(" closes") == 1
    assert "Question</p>" in shown
    assert 'boxed</span> <bdi translate="no">the explained answer' in shown
    text = html.unescape(re.sub(r"<[^>]*>", "", body)).removeprefix("Context").strip()
    assert text == CONTEXT


def test_pages_of_classifiers_have_no_box() -> None:
    shown = page(replace(explained(), answer=None, target="Ilse Brandt"))
    assert "First text" in shown
    assert 'class="answer' not in shown


def test_the_terminal_underlines_the_answer() -> None:
    shown = explanation_text(explained())
    told = plain(shown)
    assert CONTEXT in told.replace("\n", "")
    assert "question" in told
    assert "context" in told
    assert "underlined the explained answer, Ilse Brandt: begins there 40.0 %" in told
    [*_, context] = [one.renderable for one in shown.renderables if isinstance(one, Padding)]
    underlined = "".join(
        context.plain[span.start : span.end] for span in context.spans if "underline" in str(span.style)
    )
    assert underlined == "Ilse Brandt"


def test_what_is_said_of_the_answer() -> None:
    own, other = explained(), explained("baker")
    assert phrases.verdict(own).line == "Ilse Brandt 36.0 %"
    assert phrases.verdict(other).line == "Ilse Brandt"
    assert phrases.goal(other) == "probability of the answer “baker”"
    assert phrases.ends(own) == ("against the answer", "for the answer")
    rest = replace(own, target="other answers")
    assert phrases.goal(rest) == "probability of other answers"
    assert [bool(beside(e)) for e in (own, other, rest)] == [False, True, True]


def test_examples_mark_the_answer_beside_the_highest_units() -> None:
    e = explained("Brandt, bakes", "Brandt, bakes")
    shown = marks(e, 2)
    assert ["".join(mark.text for mark in text) for text in shown] == [QUESTION, CONTEXT]
    table = markdown([[Example(0, "occlusion", None, e)]], "toy", 2)
    line = table.splitlines()[-1]
    inside = line[line.index(OPEN) + 1 : line.index(CLOSE)]
    assert re.sub(r"[*]|</?u>|</?strong>", "", inside) == "Brandt, bakes"
