"""Simulatability: what the student is taught against literal versions, and that it learns from explanations."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import raison
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, LoadError, UnknownNameError, UnsupportedError
from raison.core.inputs.unit import Text, Unit
from raison.core.results.explanation import Explanation
from raison.metrics.simulatability import Simulatability
from raison.models.adapters.classifier import Classifier
from raison.models.derived.student import (
    Course,
    Lesson,
    attention_explanation,
    divergence,
    new_student,
    predict,
    teach,
    token_shares,
)
from raison.models.stack.layers import layer_stack
from raison.models.stack.tap import tap
from tests.explained import of_words
from tests.tiny import TINY

FILLERS = "old sailor told story about sea man film music plot slow jokes rain walked home watch again bad was".split()
MARKS = ("brilliant", "boring")
CLASSES = ("praise", "blame")
FAST = {"epochs": 3, "batch": 8, "learning_rate": 3e-3, "train_share": 0.5, "max_tokens": 64}


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
    model.config.num_labels = 2
    model.base_model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def spans(words: list[str]) -> tuple[Unit, ...]:
    starts = np.cumsum([0, *(len(word) + 1 for word in words)]).tolist()
    return tuple(Unit(start, start + len(word), word) for start, word in zip(starts, words, strict=False))


def explained(words: list[str], label: int, scores: list[float]) -> Explanation:
    return replace(
        of_words(" ".join(words), scores),
        classes=CLASSES,
        probabilities=(1.0 - label, float(label)),
        target=CLASSES[label],
        method="by_hand",
    )


def marked_texts(seed: int, count: int = 240) -> tuple[list[Explanation], list[Explanation]]:
    """One word of ten decides the prediction. Explanations that point at it, and at any word."""
    rng = np.random.default_rng(seed)
    right, random = [], []
    for label in rng.integers(2, size=count).tolist():
        words = [FILLERS[i] for i in rng.integers(len(FILLERS), size=9)]
        place = int(rng.integers(10))
        words.insert(place, MARKS[label])
        right.append(explained(words, label, np.eye(10)[place].tolist()))
        random.append(explained(words, label, np.eye(10)[rng.integers(10)].tolist()))
    return right, random


def test_right_explanations_teach_better_than_random_ones(base: str) -> None:
    right, random = marked_texts(0)
    metric = Simulatability(student=base, **FAST)
    taught, misled = (float(np.mean(metric.measure(group, Nothing()))) for group in (right, random))
    assert taught > 0.9
    assert misled < taught - 0.15


def test_values_are_the_same_again_and_the_random_state_is_untouched(base: str) -> None:
    right, random = marked_texts(3, 40)
    metric = Simulatability(student=base, **FAST)
    before = torch.get_rng_state(), np.random.get_state(legacy=False)["state"]["pos"]
    first = metric.measure(right, Nothing())
    torch.rand(3)
    np.random.default_rng().uniform()
    torch.set_rng_state(before[0])
    with torch.no_grad():
        assert metric.measure(right, Nothing()) == first
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state(legacy=False)["state"]["pos"] == before[1]
    assert len(first) == 20
    assert set(first) <= {0.0, 1.0}
    assert any(metric.measure(group, Nothing()) != first for group in (random, right[::-1]))


def test_without_weight_the_scores_do_not_matter(base: str) -> None:
    right, random = marked_texts(4, 60)
    control = Simulatability(student=base, weight=0.0, **FAST)
    assert control.measure(right, Nothing()) == control.measure(random, Nothing())
    students = []
    for weight, group in ((0.0, right), (0.0, random), (5.0, right)):
        student = new_student(base, CLASSES, 64, 0)
        lessons = [Lesson(e.text, 0, e.units, e.scores) for e in group]
        teach(student, lessons, Course(weight, 1, 8, 1e-3, 0))
        students.append(student.ask(Passes).logits(student.encode([right[0].text])).detach())
    assert torch.equal(students[0], students[1])
    assert not torch.allclose(students[0], students[2])


def test_a_held_out_text_counts_where_student_and_model_agree(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, _ = marked_texts(5, 20)
    metric = Simulatability(student=base, epochs=1, train_share=0.6)
    monkeypatch.setattr("raison.models.derived.student.predict", lambda _student, texts: [0] * len(texts))
    shown, held = metric.split(20)
    assert (len(shown), len(held)) == (12, 8)
    assert sorted(shown + held) == list(range(20))
    assert metric.measure(right, Nothing()) == [float(right[i].prediction == CLASSES[0]) for i in held]


def test_the_split_depends_on_the_seed_alone() -> None:
    assert Simulatability(weight=0.0).split(50) == Simulatability(part="positive").split(50)
    assert Simulatability(seed=1).split(50) != Simulatability(seed=0).split(50)
    assert Simulatability(train_share=0.01).split(10)[0]
    assert Simulatability(train_share=0.99).split(10)[1]
    assert Simulatability().size is None


def literal_shares(student: Classifier, text: Text, units: tuple[Unit, ...], matters: list[float]) -> list[float]:
    """A token at a time, from the tokenizer's own offsets."""
    parts = (text,) if isinstance(text, str) else text
    encoded = student.tokenizer(
        *parts, return_offsets_mapping=True, truncation=True, max_length=student.tokenizer.model_max_length
    )
    owners = encoded.sequence_ids(0)
    touching = []
    for unit in units:
        touching.append(
            [
                token
                for token, (start, end) in enumerate(encoded["offset_mapping"])
                if owners[token] == unit.segment and max(start, unit.start) < min(end, unit.end)
            ]
        )
    read = sum(matter for matter, tokens in zip(matters, touching, strict=True) if tokens)
    shares = [0.0] * len(owners)
    for matter, tokens in zip(matters, touching, strict=True):
        for token in tokens:
            shares[token] += matter / read / len(tokens) if read else 0.0
    return shares


PAIR = ("boring man told it", "a boring film")
PAIR_UNITS = tuple(Unit(u.start, u.end, u.text, segment) for segment in (0, 1) for u in spans(PAIR[segment].split()))


@pytest.mark.parametrize("limit", [64, 9])
def test_shares_on_the_student_s_tokens(base: str, limit: int) -> None:
    """Words of several pieces, units of several words, a pair, a text that is cut off, and one without a hint."""
    student = new_student(base, CLASSES, limit, 0)
    long = "unbelievable sailor told wonderful jokes again and again"
    # A unit that spans two words: what joins them is in no token.
    joined = (Unit(0, 19, long[:19]), *spans(long.split())[2:])
    lessons = [
        Lesson(long, 0, spans(long.split()), (0.5, 0.0, 1.5, 2.0, 0.1, 0.0, 0.0, 0.3)),
        Lesson(long, 0, joined, (3.0, 0.0, 1.0, 0.0, 0.5, 0.0, 0.1)),
        Lesson(PAIR, 1, PAIR_UNITS, (1.0, 0.0, 0.5, 0.0, 2.0, 0.25, 0.0)),
        Lesson("dull", 1, spans(["dull"]), (0.0,)),
    ]
    encoding = student.encode([lesson.text for lesson in lessons], "token", truncate=True)
    assert any(encoding.truncated) == (limit == 9)
    found = token_shares(encoding, lessons)
    for row, lesson in enumerate(lessons):
        expected = literal_shares(student, lesson.text, lesson.units, list(lesson.matters))
        np.testing.assert_allclose(found[row, : len(expected)], expected, atol=1e-6)
        assert not found[row, len(expected) :].any()
        assert found[row].sum() == pytest.approx(0 if lesson.text == "dull" else 1)


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "modernbert", "llama", "gpt2", "mistral"])
def test_the_student_s_attention_explanation(family: str) -> None:
    """One text, head and row at a time: only what a row may attend to has a score (decoders, sliding windows)."""
    model, tokenizer = TINY[family]()
    student = Classifier(model, tokenizer, family)
    texts = ["the old sailor told a story", "boring"]
    encoding = student.encode(texts, "token")
    with torch.no_grad(), tap(student.core, record=("scores", "probabilities")) as seen:
        student.ask(Passes).logits(encoding)
    layers = sorted(seen.scores)
    heads = sum(seen.scores[layer].shape[1] for layer in layers)
    mix = torch.randn(heads, generator=torch.Generator().manual_seed(0))
    found = attention_explanation([seen.scores[layer] for layer in layers], encoding, mix)
    weights = [math.exp(c) / sum(math.exp(d) for d in mix.tolist()) for c in mix.tolist()]
    for text, length in enumerate(encoding.lengths):
        tokens = [t for t in range(length) if encoding.unit_ids[text, t] >= 0]
        total = dict.fromkeys(tokens, 0.0)
        for token in tokens:
            column = 0
            for layer in layers:
                for head in range(seen.scores[layer].shape[1]):
                    attended = seen.probabilities[layer][text, head, :length, token] > 0
                    scores = seen.scores[layer][text, head, :length, token][attended].tolist()
                    total[token] += weights[column] * sum(scores) / len(scores)
                    column += 1
        norm = sum(math.exp(value) for value in total.values())
        expected = [math.exp(total[t]) / norm if t in total else 0.0 for t in range(found.shape[1])]
        np.testing.assert_allclose(found[text].exp(), expected, atol=1e-6)


def test_divergence_by_hand() -> None:
    hints = torch.tensor([[0.0, 0.25, 0.75, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    shares = torch.tensor([[0.0, 0.5, 0.3, 0.2], [0.0, 0.1, 0.9, 0.0], [0.0, 0.4, 0.6, 0.0]], requires_grad=True)
    found = divergence(hints, shares.log())
    expected = [0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.3), 0.0, math.log(1 / 0.4)]
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-6)


def test_one_step_of_teaching_is_that_of_the_loss(base: str) -> None:
    """Plain gradients of cross-entropy + weight x KL, by hand, and one step of AdamW."""
    rows = marked_texts(6, 4)[0]
    lessons = [Lesson(e.text, CLASSES.index(e.prediction), e.units, e.scores) for e in rows]
    taught, literal = new_student(base, CLASSES, 64, 0), new_student(base, CLASSES, 64, 0)
    teach(taught, lessons, Course(2.5, 1, 4, 1e-3, 0))
    encoding = literal.encode([lesson.text for lesson in lessons], "token")
    optimizer = torch.optim.AdamW(literal.model.parameters(), lr=1e-3)
    with tap(literal.core, record=("scores",)) as seen:
        logits = literal.ask(Passes).logits(encoding)
    heads = torch.zeros(sum(layer.shape[1] for layer in seen.scores.values()))
    explained = attention_explanation([seen.scores[layer] for layer in sorted(seen.scores)], encoding, heads).exp()
    loss = torch.zeros(())
    for row, lesson in enumerate(lessons):
        loss = loss - logits[row].log_softmax(-1)[lesson.label] / 4
        for token, share in enumerate(token_shares(encoding, lessons)[row].tolist()):
            if share:
                loss = loss + 2.5 / 4 * share * (math.log(share) - explained[row, token].log())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(literal.model.parameters(), 1.0)
    optimizer.step()
    compared = 0
    for one, other in zip(taught.model.parameters(), literal.model.parameters(), strict=True):
        # Adam's first step has the same size for any gradient: where it is nothing but rounding, so is the step.
        real = other.grad.abs() > 1e-5
        torch.testing.assert_close(one[real], other[real], atol=2e-5, rtol=1e-4)
        compared += int(real.sum())
    assert compared > 5000


def test_unusual_labels_and_scores_teach_without_harm(base: str) -> None:
    """A class that occurs once, one that never does, and texts without a hint or with negative scores alone."""
    right, _ = marked_texts(7, 12)
    group = [replace(e, classes=("other", *CLASSES), probabilities=(0.0, 1.0, 0.0), scores=(0.0,) * 10) for e in right]
    group[0] = replace(group[0], probabilities=(0.0, 0.0, 1.0), scores=(-1.0,) * 10)
    for part in ("absolute", "positive"):
        metric = Simulatability(student=base, part=part, epochs=1)
        assert len(metric.measure(group, Nothing())) == 2


def test_parts_of_the_scores(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taught: list[Lesson] = []
    monkeypatch.setattr(
        "raison.models.derived.student.teach", lambda _student, lessons, _course: taught.extend(lessons)
    )
    group = [replace(e, scores=(-2.0, 1.0, *[0.0] * 8)) for e in marked_texts(8, 10)[0]]
    Simulatability(student=base).measure(group, Nothing())
    Simulatability(student=base, part="positive").measure(group, Nothing())
    assert {lesson.matters[:2] for lesson in taught} == {(2.0, 1.0), (0.0, 1.0)}


def test_too_few_texts(base: str) -> None:
    model = raison.load(*TINY["bert"]())
    with pytest.raises(UnsupportedError, match="needs at least 10 texts; got 9"):
        raison.compare(model, ["a dull plot"] * 9, "random", Simulatability(student=base))


def test_a_student_that_knows_a_task_is_refused(tmp_path: Path) -> None:
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="give a base model"):
        new_student(str(tmp_path), CLASSES, 64, 0)


@pytest.mark.parametrize(
    "settings",
    [
        lambda: Simulatability(train_share=1.0),
        lambda: Simulatability(weight=-1.0),
        lambda: Simulatability(epochs=0),
        lambda: Simulatability(max_tokens=2),
        lambda: Simulatability(part="negative"),
    ],
)
def test_settings_that_cannot_be_used(settings: Callable[[], object]) -> None:
    with pytest.raises((InputError, UnknownNameError), match="give|must|Known"):
        settings()


def test_an_unknown_student_is_named(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="cannot be a student"):
        new_student(str(tmp_path), CLASSES, 64, 0)
    with pytest.raises(UnknownNameError, match="minilm"):
        new_student("minilmm", CLASSES, 64, 0)


@pytest.mark.demo
@pytest.mark.parametrize(("name", "layers"), [("tiny", 2), pytest.param("minilm", 6, marks=pytest.mark.thorough)])
def test_ready_made_students_learn(name: str, layers: int) -> None:
    state = torch.get_rng_state()
    student, twin = (new_student(name, CLASSES, 32, 0) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert student.core.config.num_hidden_layers == layers
    assert student.max_tokens == 32
    for one, other in zip(student.model.parameters(), twin.model.parameters(), strict=True):
        assert torch.equal(one, other)
    lessons = [Lesson(text, label, (), ()) for label, text in enumerate(("the plot moves", "a dull film"))]
    teach(student, lessons, Course(0.0, 10, 2, 5e-4, 0))
    assert predict(student, [lesson.text for lesson in lessons]) == [0, 1]


def test_out_of_memory_changes_no_student(base: str) -> None:
    """Memory for three texts: a batch of eight is taken in parts, and so are the next ones."""
    lessons = [Lesson(e.text, CLASSES.index(e.prediction), e.units, e.scores) for e in marked_texts(6, 12)[0]]
    wide, narrow = new_student(base, CLASSES, 64, 0), new_student(base, CLASSES, 64, 0)
    failed: list[int] = []

    def limited(_layer: nn.Module, args: tuple[torch.Tensor, ...]) -> None:
        if len(args[0]) > 3:
            failed.append(len(args[0]))
            raise torch.OutOfMemoryError("no room")

    hook = layer_stack(narrow.core)[0].register_forward_pre_hook(limited)
    for student in (wide, narrow):
        teach(student, lessons, Course(2.5, 2, 8, 1e-3, 0))
    hook.remove()
    assert failed == [8, 4, 4]
    texts = [lesson.text for lesson in lessons]
    found, expected = (student.ask(Passes).logits(student.encode(texts)).detach() for student in (narrow, wide))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
