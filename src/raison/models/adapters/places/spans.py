"""Extractive question answering: texts are pairs (question, context), and the answer is a span of the context."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, LoadError, TextTooLongError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given, plain
from raison.core.inputs.unit import PART, Granularity, Text
from raison.core.model import LanguageModel
from raison.core.targets.answer import Answer, ExplainedAnswer
from raison.core.targets.choices import for_each_text
from raison.core.targets.target import TargetSpec
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.task_setup import QUESTION, TaskSetup
from raison.models.passes.outputs.heads import SpanHead
from raison.models.passes.removal import replacement_ids
from raison.models.stack.transformer import inner_model, is_a
from raison.models.tokens.encoder import TextEncoder
from raison.models.tokens.max_tokens import max_tokens
from raison.models.tokens.own_tokenizer import own_tokenizer
from raison.models.tokens.token_rows import name_of
from raison.text.surrogates import without_surrogates

CLASSES = ("answer", "other answers")


def is_answering(core: PreTrainedModel) -> bool:
    """Whether a model answers questions with a span of a text."""
    return is_a(core, "ForQuestionAnswering", "ForQuestionAnsweringSimple")


def answering(model: nn.Module, tokenizer: PreTrainedTokenizerBase, name: str) -> Classifier:
    """The adapter of a question answering model. Raises LoadError where the tokenizer lacks any token for removals."""
    if not replacement_ids(tokenizer):
        raise LoadError(
            f"the tokenizer of '{name}' has no mask, unknown or padding token. An answer is a position in the text, so "
            "tokens must be replaced, not deleted: give the tokenizer one of these tokens."
        )
    encoder = QuestionEncoder(tokenizer, max_tokens(inner_model(model).config, tokenizer.model_max_length))
    use = TaskSetup(encoder, SpanHead(CLASSES, multi_label=False), probe=lambda text: (QUESTION, text))
    return Classifier(model, tokenizer, name, use)


class QuestionEncoder:
    """Tokenizes pairs (question, context); only the context is truncated."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, longest: int | None) -> None:
        self._tokenizer = own_tokenizer(tokenizer)
        self._longest = longest
        self._inner = TextEncoder(tokenizer, longest, truncation="only_second")

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode. Raises InputError for a text that is no pair, or whose context is one token."""
        for number, text in enumerate(texts):
            self._check(plain(text), name_of(number, len(texts)))
        encoding = self._inner.encode(texts, unit, truncate)
        if unit == PART:
            # An answer may also lie outside the caller's parts.
            whole = self._inner.encode([plain(text) for text in texts], "token", truncate)
            encoding = replace(encoding, answerable=whole.context)
        for number, count in enumerate(encoding.context.sum(1).tolist()):
            if count < 2:
                raise InputError(
                    f"the context of {name_of(number, len(texts))} has {count} token{'s' * (count != 1)} that the "
                    "model reads, and needs at least two to choose an answer from. Give a longer context, or a shorter "
                    "question."
                )
        return encoding

    def _check(self, text: Text, where: str) -> None:
        if not isinstance(text, tuple) or len(text) != 2:
            raise InputError(
                f"{where} is {text!r:.80}: a question answering model needs pairs (question, context); on the command "
                "line, the question and --pair CONTEXT."
            )
        if self._longest is None or not isinstance(text[0], str):
            return
        # Special tokens and one token of the context must also fit.
        length = len(
            self._tokenizer(without_surrogates(text[0]), "", verbose=False, padding=False, truncation=False)[
                "input_ids"
            ]
        )
        if length + 2 > self._longest:
            raise TextTooLongError(
                f"the question of {where} has {length} tokens including special ones, and the model reads at most "
                f"{self._longest}, context included: shorten the question."
            )


def answer_tokens(encoding: Encoding, answers: Sequence[Answer]) -> Int[Tensor, "batch 2"]:
    """The first and last token of each row's answer; an answer that ends inside a token is widened to it.

    Raises InputError for an answer outside the context, or outside the part of it that the model reads.
    """
    if len(answers) != len(encoding):
        raise InputError(f"{len(answers)} answers for {len(encoding)} texts: give one for each.")
    positions = _positions(encoding, answers)
    for row, (span, answer) in enumerate(zip(positions, answers, strict=True)):
        if span is None:
            raise InputError(
                f"the answer {answer.text!r:.60} of {name_of(row, len(encoding))} (characters {answer.start} to "
                f"{answer.end} of the context) is outside what the model reads of it ({_read(encoding, row)}): use a "
                "model with a longer input, shorten the contexts (raison.data.around_answers), or leave such rows out."
            )
    return torch.tensor([span for span in positions if span is not None], dtype=torch.long).reshape(-1, 2)


def inside_window(encoding: Encoding, answers: Sequence[Answer]) -> list[bool]:
    """Whether each row's answer lies inside the part of the context that the model reads."""
    return [span is not None for span in _positions(encoding, answers)]


def settled(encoding: Encoding, spec: TargetSpec) -> tuple[Encoding, TargetSpec]:
    """The encoding with the answers that a target names, and the class to explain: 0, "answer", by default.

    None is the predicted answer of each text, even if it is less probable than all others together. A string selects
    its first occurrence in each context; a list gives a string for each text, or None for each. Raises InputError.
    """
    stated = [spec] * len(encoding) if isinstance(spec, str) else spec
    if isinstance(stated, list) and any(one is None for one in stated):
        if any(one is not None for one in for_each_text(stated, len(encoding))):
            raise InputError(
                "only some texts have answers as targets: give a part of the context for each text, or None for all, "
                "the predicted answers."
            )
        stated = None
    if isinstance(stated, list) and all(isinstance(one, str) for one in stated):
        spans = answer_tokens(encoding, _stated_answers(encoding, [str(one) for one in stated]))
        return replace(encoding, spans=spans), 0
    if isinstance(stated, tuple) and any(isinstance(one, str) for one in stated):
        raise InputError(
            f"target {stated!r:.80} names two answers, but one answer is explained against all others: give one part "
            "of the context, or 0 for the predicted answer."
        )
    return encoding, 0 if stated is None else stated


def explained(
    model: LanguageModel, encoding: Encoding, predicted: Int[Tensor, "batch 2"]
) -> tuple[ExplainedAnswer, ...]:
    """The answers that `encoding.spans` name, with their probabilities and the predicted answers: a pass per text."""
    assert encoding.spans is not None, "an encoding without answers to explain"
    sure: dict[int, tuple[float, float]] = {}

    def run(rows: list[int]) -> Tensor:
        with torch.no_grad():
            return model.ask(Passes).decisions(encoding.select(rows)).double().softmax(-1).cpu()

    for rows, shares in model.ask(Passes).in_batches(encoding, run):
        for row, probabilities in zip(
            rows, shares.gather(2, encoding.spans[rows][:, :, None])[:, :, 0].tolist(), strict=True
        ):
            sure[row] = probabilities[0], probabilities[1]
    stated, given = span_answers(encoding, encoding.spans), span_answers(encoding, predicted)
    return tuple(
        ExplainedAnswer(answer.start, answer.end, answer.text, *sure[row], by_model)
        for row, (answer, by_model) in enumerate(zip(stated, given, strict=True))
    )


def _stated_answers(encoding: Encoding, stated: Sequence[str]) -> list[Answer]:
    answers = []
    for row, text in enumerate(for_each_text(list(stated), len(encoding))):
        start = encoding.texts[row][1].find(text) if text.strip() else -1
        if start < 0:
            raise InputError(
                f"target {text!r:.60} is not in the context of {name_of(row, len(stated))}: a target is a part of the "
                "context, written exactly as there; leave it out to explain the predicted answer."
            )
        answers.append(Answer(start, start + len(text), text))
    return answers


def span_answers(encoding: Encoding, spans: Int[Tensor, "batch 2"]) -> list[Answer]:
    """The text of the tokens from first to last, stripped of white space."""
    answers = []
    for row, (first, last) in enumerate(spans.tolist()):
        context, offsets = encoding.texts[row][1], encoding.offsets[row]
        start, end = int(offsets[first, 0]), int(offsets[last, 1])
        text = context[start:end]
        start += len(text) - len(text.lstrip())
        answers.append(Answer(start, start + len(text.strip()), text.strip()))
    return answers


def _positions(encoding: Encoding, answers: Sequence[Answer]) -> list[tuple[int, int] | None]:
    """First and last token that share a character with each answer; None where the model does not read all of it."""
    positions: list[tuple[int, int] | None] = []
    contexts = encoding.context
    for row, answer in enumerate(answers):
        text = encoding.texts[row][1][answer.start : answer.end]
        start = answer.start + len(text) - len(text.lstrip())
        end = start + len(text.strip())
        offsets = encoding.offsets[row]
        shared = contexts[row] & (offsets[:, 0] < end) & (offsets[:, 1] > start)
        places = shared.nonzero()[:, 0].tolist()
        # A tokenizer may skip characters, so only the truncation shows that the end of an answer is missing.
        whole = not encoding.truncated[row] or end <= int(offsets[contexts[row], 1].max())
        positions.append((places[0], places[-1]) if places and whole and start < end else None)
    return positions


def _read(encoding: Encoding, row: int) -> str:
    ends = encoding.offsets[row, :, 1][encoding.context[row]]
    cut = f", {encoding.truncated[row]} tokens cut off" if encoding.truncated[row] else ""
    return f"its first {int(ends.max())} characters{cut}"
