"""A student: a small model that learns to copy another model, with explanations as hints while it learns.

The hint is given as in SMaT (Fernandes et al. 2022): the student has its own attention explanation, which is trained
towards the explanation it is shown. When it is tested, it sees only texts.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import (
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    BertConfig,
    PreTrainedTokenizerBase,
)

from raison.core.capabilities.passes import Passes
from raison.core.dims import Attention
from raison.core.errors import InputError, LoadError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.unit import Text, Unit
from raison.core.targets.answer import Answer
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.places.spans import answer_tokens, answering, inside_window
from raison.models.loading.pretrained import read_tokenizer
from raison.models.loading.ready_made import base_weights, zoo
from raison.models.passes.batching import TokenBudget, mean_over
from raison.models.stack.eval_mode import drawing
from raison.models.stack.tap import attention_modules, tap
from raison.models.tokens.alignment import shared_characters
from raison.numerics.attention.interpretable import TokenMasks, mixed_heads

CONFIG = "config.json"
TINY = "tiny"
LAYERS, HIDDEN, HEADS, INNER, POSITIONS = 2, 128, 2, 512, 512
"""The student "tiny": the smallest BERT of Turc et al. 2019, with random weights."""
MIX_RATE = 0.01
"""Learning rate of the head coefficients, which start at 0 and need their own step size."""
CLIP = 1.0


@dataclass(frozen=True, slots=True)
class Lesson:
    """A text, the explained model's prediction for it, and the importance of each of its units (>= 0).

    A prediction is a class, or the answer to a question. If all importances are zero, there is no explanation, and the
    text is learned without a hint.
    """

    text: Text
    label: int | Answer
    units: tuple[Unit, ...]
    matters: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Course:
    """A student's training settings; `weight` is the weight of the explanation loss, 0 for none."""

    weight: float
    epochs: int
    batch: int
    learning_rate: float
    seed: int


def new_student(name: str, classes: tuple[str, ...], max_tokens: int, seed: int) -> Classifier:
    """An untrained classifier: from a folder, from a base that models/loading knows, or "tiny".

    `seed` determines its random weights. It reads the first `max_tokens` tokens of a text. It is put on a GPU if there
    is one. Raises UnknownNameError, LoadError, InputError for a folder with a model that was trained for a task.
    """
    if name == TINY:
        model, tokenizer = _tiny(AutoModelForSequenceClassification, len(classes), seed)
    else:
        model, tokenizer = zoo.fresh_classifier(_base(name), classes, seed)
    model, tokenizer = _placed(model, tokenizer, max_tokens)
    return Classifier(model, tokenizer, f"student/{name}")


def new_answering_student(name: str, max_tokens: int, seed: int) -> Classifier:
    """The same for question answering. A text that is too long is cut at the context."""
    if name == TINY:
        model, tokenizer = _tiny(AutoModelForQuestionAnswering, 2, seed)
    else:
        model, tokenizer = zoo.fresh_span_model(_base(name), seed)
    return answering(*_placed(model, tokenizer, max_tokens), f"student/{name}")


def _base(name: str) -> Path:
    folder = Path(name) if os.path.isdir(name) else base_weights.fetch(name)
    _check_base(folder)
    return folder


def _placed(
    model: nn.Module, tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> tuple[nn.Module, PreTrainedTokenizerBase]:
    tokenizer.model_max_length = min(tokenizer.model_max_length, max_tokens)
    return model.to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer


def _check_base(folder: Path) -> None:
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LoadError(f"cannot read {folder / CONFIG}, so {folder} cannot be a student: {error}.") from error
    trained = {"ForSequenceClassification": "classifier", "ForQuestionAnswering": "question answering model"}
    for name in config.get("architectures") or ():
        for ending, kind in trained.items():
            if name.endswith(ending):
                raise InputError(
                    f"the student {folder} is a trained {kind}, and a student must not know the task: give a base "
                    "model."
                )


def _tiny(kind: Any, outputs: int, seed: int) -> tuple[nn.Module, PreTrainedTokenizerBase]:
    tokenizer = read_tokenizer(base_weights.fetch("minilm"))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        max_position_embeddings=POSITIONS,
        pad_token_id=tokenizer.pad_token_id,
        num_labels=outputs,  # type: ignore[call-arg]
    )
    with drawing(seed):
        model = kind.from_config(config, trust_remote_code=False)
    return model.eval(), tokenizer


@dataclass(frozen=True, slots=True)
class _HintComparison:
    """How the student's explanations are compared with hints: the mix of its heads, and the divergence's weight."""

    mix: nn.Parameter
    weight: float


def teach(student: Classifier, lessons: Sequence[Lesson], course: Course) -> None:
    """Train every weight of the student on the lessons, in an order that the seed determines.

    Loss of a batch: cross-entropy of the labels + weight x mean KL(hint || the student's attention explanation). An
    answer counts half for its first and half for its last token; a lesson whose answer is outside the student's window
    is skipped. A batch that does not fit into memory is taken in parts that add up to the same step. AdamW without
    dropout, at a constant rate: no random number is drawn from torch.
    """
    lessons, encoding, labels = _readable(student, lessons)
    hints = token_shares(encoding, lessons)
    mix = nn.Parameter(torch.zeros(_heads(student), device=student.device)) if course.weight else None
    parameters = list(student.model.parameters())
    groups: list[dict[str, Any]] = [{"params": parameters}]
    if mix is not None:
        groups.append({"params": [mix], "lr": MIX_RATE})
    optimizer = torch.optim.AdamW(groups, lr=course.learning_rate)
    learned = parameters if mix is None else [*parameters, mix]
    explained = None if mix is None else _HintComparison(mix, course.weight)
    room = TokenBudget(course.batch)
    rng = np.random.default_rng(course.seed)

    def slopes(rows: list[int]) -> Sequence[Tensor | None]:
        part = encoding.select(rows)
        loss = _loss(student, part, labels[rows], hints[rows, : part.input_ids.shape[1]], explained)
        return torch.autograd.grad(loss, learned, allow_unused=True)

    with torch.enable_grad():
        for _ in range(course.epochs):
            order = rng.permutation(len(lessons))
            for start in range(0, len(order), course.batch):
                gradients = mean_over(room, order[start : start + course.batch].tolist(), slopes)
                for parameter, slope in zip(learned, gradients, strict=True):
                    parameter.grad = slope
                nn.utils.clip_grad_norm_(student.model.parameters(), CLIP)
                optimizer.step()


def _readable(student: Classifier, lessons: Sequence[Lesson]) -> tuple[Sequence[Lesson], Encoding, Tensor]:
    """The lessons that the student can learn, with their choices, (lessons, parts): see Passes.decisions."""
    encoding = student.encode([lesson.text for lesson in lessons], "token", truncate=True)
    answers = [lesson.label for lesson in lessons if isinstance(lesson.label, Answer)]
    if not answers:
        return lessons, encoding, torch.tensor([lesson.label for lesson in lessons])[:, None]
    rows = [row for row, inside in enumerate(inside_window(encoding, answers)) if inside]
    if not rows:
        raise InputError(
            "no answer lies in what the student reads of its context: give it more tokens (max_tokens), or shorten the "
            "contexts."
        )
    part = encoding.select(rows)
    return [lessons[row] for row in rows], part, answer_tokens(part, [answers[row] for row in rows])


def answers_alike(student: Classifier, lessons: Sequence[Lesson]) -> list[bool]:
    """Whether the student predicts the first and the last token of each lesson's answer. It sees only the texts.

    It cannot give an answer outside the part of the context that it reads.
    """
    encoding = student.encode([lesson.text for lesson in lessons], "token", truncate=True)
    assert encoding.spans is not None, "a student that answers no questions"
    answers = [lesson.label for lesson in lessons if isinstance(lesson.label, Answer)]
    correct = [False] * len(lessons)
    inside = [row for row, there in enumerate(inside_window(encoding, answers)) if there]
    for row in inside:
        wanted = answer_tokens(encoding.select([row]), [answers[row]])[0]
        correct[row] = bool((encoding.spans[row] == wanted).all())
    return correct


def predict(student: Classifier, texts: Sequence[Text]) -> list[int]:
    """The class that the student predicts for each text."""
    encoding = student.encode(texts, "token", truncate=True)
    predicted: dict[int, int] = {}

    def run(rows: list[int]) -> list[int]:
        with torch.no_grad():
            return student.ask(Passes).logits(encoding.select(rows)).argmax(-1).tolist()

    for rows, labels in student.ask(Passes).in_batches(encoding, run):
        predicted.update(zip(rows, labels, strict=True))
    return [predicted[row] for row in range(len(texts))]


def token_shares(encoding: Encoding, lessons: Sequence[Lesson]) -> Float[Tensor, "batch tokens"]:
    """Each lesson's explanation on the student's own tokens, summing to 1; a row of zeros where there is none.

    A unit's mass is split evenly among the tokens that share a character with it. Special tokens get nothing; units
    that the student does not read (cut off) are left out of the sum.
    """
    shares = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
    for row, (lesson, tokens) in enumerate(zip(lessons, encoding.units, strict=True)):
        overlap = shared_characters(lesson.units, tokens)
        matters = np.array(lesson.matters) * overlap.any(axis=1)
        if not matters.any():
            continue
        mass = (matters / matters.sum()) @ (overlap / np.maximum(overlap.sum(axis=1, keepdims=True), 1))
        # One unit may have several positions (the bytes of a character).
        owners = encoding.unit_ids[row][encoding.scored[row]]
        shares[row, encoding.scored[row]] = torch.from_numpy(mass)[owners] / owners.bincount()[owners]
    return shares.float()


def attention_explanation(
    scores: Sequence[Attention], encoding: Encoding, mix: Float[Tensor, " coefficients"]
) -> Float[Tensor, "batch tokens"]:
    """Logarithm of the student's explanation, over the tokens that belong to a unit; -inf elsewhere.

    log softmax_t of sum_h softmax(mix)_h mean_q scores_h(q, t): attention scores before their softmax, averaged over
    the rows that attend, and the heads of all layers mixed.
    """
    places = TokenMasks(encoding.attention_mask.to(mix.device), encoding.scored.to(mix.device))
    return mixed_heads(scores, mix.softmax(0), places).log_softmax(-1)


def divergence(
    hints: Float[Tensor, "batch tokens"], explained: Float[Tensor, "batch tokens"]
) -> Float[Tensor, " batch"]:
    """KL(hint || explanation) of each text, with the explanation as logarithms; 0 for a row without a hint.

    Zeros of the hint add nothing (0 log 0 = 0), and a softmax has none, so no smoothing is needed.
    """
    present = hints > 0
    # Both logarithms are masked first: -inf times zero would make the gradients NaN.
    logs = torch.where(present, hints, 1).log() - torch.where(present, explained, 0)
    return (hints * logs).sum(-1)


def _loss(
    student: Classifier, part: Encoding, labels: Tensor, hints: Tensor, explained: _HintComparison | None
) -> Tensor:
    labels, hints = labels.to(student.device), hints.to(student.device)
    if explained is None:
        return _task_loss(student.ask(Passes).decisions(part), labels)
    with tap(student.core, record=("scores",)) as attention:
        decisions = student.ask(Passes).decisions(part)
    scores = [attention.scores[layer] for layer in sorted(attention.scores)]
    apart = divergence(hints, attention_explanation(scores, part, explained.mix)).mean()
    return _task_loss(decisions, labels) + explained.weight * apart


def _task_loss(decisions: Float[Tensor, "batch parts choices"], labels: Int[Tensor, "batch parts"]) -> Tensor:
    return nn.functional.cross_entropy(decisions.flatten(0, 1), labels.flatten())


def _heads(student: Classifier) -> int:
    return len(attention_modules(student.core)) * student.core.config.num_attention_heads
