"""Simulatability of models that answer questions: what the student learns, and when it counts as alike."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError
from raison.core.results.explanation import Explanation
from raison.core.targets.answer import Answer
from raison.metrics.simulatability import Simulatability
from raison.models.derived import student as students
from raison.models.derived.student import Course, Lesson, answers_alike, new_answering_student, teach
from tests.tiny import TINY, build_answering

FILLERS = "old sailor told story about sea man film music plot slow jokes rain walked home watch again bad was".split()


class Nothing:
    """core.metric.GroupEvidence: the model is not asked again."""

    def hidden_states(self) -> list[np.ndarray]:
        raise AssertionError("the student sees texts, predictions and explanations alone")

    def once(self, name: str, made: Callable[[], np.ndarray]) -> np.ndarray:
        return made()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tiny base model that knows no task."""
    folder = tmp_path_factory.mktemp("base")
    model, tokenizer = TINY["bert"]()
    model.base_model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def explanations() -> list[Explanation]:
    """A tiny model's answers to questions about twelve contexts without sense."""
    rng = np.random.default_rng(0)
    texts = [("what ?", " ".join(FILLERS[i] for i in rng.integers(len(FILLERS), size=8))) for _ in range(12)]
    return raison.explain(raison.load(*build_answering("roberta")), texts, "occlusion", progress=False)


def lesson(answer: str, context: str = "the old sailor told a story about the sea") -> Lesson:
    start = context.index(answer)
    units = raison.load(*build_answering("bert")).encode([("who ?", context)]).units[0]
    return Lesson(("who ?", context), Answer(start, start + len(answer), answer), units, (1.0,) * len(units))


def test_a_step_of_teaching_is_that_of_both_cross_entropies(base: str) -> None:
    """By hand: the mean over first and last tokens of -log p, from the plain model."""
    lessons = [lesson("old sailor"), lesson("story"), lesson("plot", "a slow plot")]
    taught, plain = (new_answering_student(base, 64, 0) for _ in range(2))
    teach(taught, lessons, Course(weight=0.0, epochs=1, batch=3, learning_rate=1e-2, seed=0))
    optimizer = torch.optim.AdamW(plain.model.parameters(), lr=1e-2)
    loss = torch.zeros(())
    for one in lessons:
        question, context = one.text
        given = plain.tokenizer(question, context, return_tensors="pt", return_offsets_mapping=True)
        offsets = given.pop("offset_mapping")[0].tolist()
        own = [place for place, segment in enumerate(given.sequence_ids(0)) if segment == 1]
        output = plain.model(**given)
        assert isinstance(one.label, Answer)
        shared = [p for p in own if offsets[p][0] < one.label.end and offsets[p][1] > one.label.start]
        for logits, place in ((output.start_logits[0], shared[0]), (output.end_logits[0], shared[-1])):
            loss = loss - logits[own].log_softmax(0)[own.index(place)] / (2 * len(lessons))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(plain.model.parameters(), students.CLIP)
    optimizer.step()
    compared = 0
    for one, other in zip(taught.model.parameters(), plain.model.parameters(), strict=True):
        # Adam's first step has the same size for any gradient: where it is nothing but rounding, so is the step.
        real = other.grad.abs() > 1e-5
        torch.testing.assert_close(one[real], other[real], atol=2e-4, rtol=1e-4)
        compared += int(real.sum())
    assert compared > 5000


def test_both_ends_must_be_right(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lessons = [lesson("old sailor"), lesson("old"), lesson("sailor"), lesson("story")]
    student = new_answering_student(base, 64, 0)
    spans = students.answer_tokens(student.encode([one.text for one in lessons]), [lessons[0].label] * 4)
    monkeypatch.setattr(type(student.ask(Passes)), "predicted", lambda _self, encoding: spans[: len(encoding)])
    assert answers_alike(student, lessons) == [True, False, False, False]


def test_an_answer_that_the_student_does_not_read_is_no_lesson(base: str) -> None:
    long = "sea " * 20 + "story"
    student = new_answering_student(base, 32, 0)
    assert answers_alike(student, [lesson("story", long)]) == [False]
    before = {name: value.clone() for name, value in student.model.state_dict().items()}
    course = Course(weight=1.0, epochs=1, batch=4, learning_rate=1e-2, seed=0)
    with pytest.raises(InputError, match="max_tokens"):
        teach(student, [lesson("story", long)], course)
    assert all(torch.equal(value, before[name]) for name, value in student.model.state_dict().items())
    teach(student, [lesson("story", long), lesson("story")], course)
    assert any(not torch.equal(value, before[name]) for name, value in student.model.state_dict().items())


@pytest.mark.parametrize("weight", [0.0, 5.0])
def test_the_metric_on_answers(base: str, explanations: list[Explanation], weight: float) -> None:
    """Taught the same texts that it is asked about, a student of another tokenizer learns most of the answers."""
    metric = Simulatability(
        student=base, weight=weight, train_share=0.5, epochs=30, batch=6, learning_rate=5e-3, max_tokens=64
    )
    shown, held = metric.split(len(explanations))
    twice = [explanations[0]] * len(explanations)
    for place, number in enumerate(shown):
        twice[number] = explanations[place]
    for place, number in enumerate(held):
        twice[number] = explanations[place]
    values = metric.measure(twice, Nothing())
    assert len(values) == len(held)
    assert set(values) <= {0.0, 1.0}
    assert np.mean(values) >= 0.8
    if weight:
        assert metric.measure(twice, Nothing()) == values
    untaught = Simulatability(student=base, train_share=0.5, epochs=1, learning_rate=1e-9, max_tokens=64)
    assert np.mean(untaught.measure(twice, Nothing())) < np.mean(values)


def test_a_student_that_answers_already_is_refused(tmp_path: Path) -> None:
    model, tokenizer = build_answering("bert")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="trained question answering model"):
        new_answering_student(str(tmp_path), 64, 0)
