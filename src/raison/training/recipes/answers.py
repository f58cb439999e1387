"""Fine-tuning of a language model that answers questions by copying from sources, by low-rank adapters."""

import json
import os
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from raison.core.inputs.chat import Chat
from raison.data.sourced.articles import Article, articles
from raison.data.sourced.passages import Passages, among_others, readings
from raison.data.sourced.planted import planted
from raison.data.sourced.question import KnownSources
from raison.jobs import disk
from raison.jobs.folder import ANSWERS
from raison.jobs.identity import DATA, SETTINGS, TOKENIZER, digest_of, training_in
from raison.models.adapters.writing.generator import Generator
from raison.models.derived.identity import base_identity
from raison.models.loading.pretrained import read_tokenizer
from raison.models.loading.ready_made import base_weights, zoo
from raison.models.stack.eval_mode import drawing, quiet
from raison.progress import progress_bar
from raison.text.answer_match import same_answer
from raison.text.sourced import find
from raison.training.loop.trainer import Evaluation, History, TrainSettings, fit
from raison.training.objectives.next_tokens import NextTokens
from raison.training.preparation.passage_batches import TEMPLATE, AnswerLogits, ReadingBatches
from raison.training.recipes.card import TrainingCall, base_entry, determining, final_loss, run_notes
from raison.training.recipes.classifier import CHECKPOINT_FILE, save_adapter
from raison.training.settings.answers import AnswersSettings as AnswersSettings

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj")
OTHERS = (4, 9, 19)
SENTENCES = 2
"""Number of sentences of each passage in held-out questions."""
HELD_OUT_FACTS = 1_000_000_007
"""The seed of held-out made-up facts. Those of a training's seed and epoch begin with 1, and grow with both."""
_LONGEST = 24
"""Maximum number of tokens of an answer; SQuAD's are shorter."""


def train_answers(base: str, out: Path, settings: AnswersSettings, command: str = "") -> dict[str, Any]:
    """Train an adapter for `base` (a language model's name or folder) on SQuAD's training part; save it to `out`.

    Writes the adapter in PEFT's format (safetensors, float16), card.json and README.md, and returns the card. Shares of
    exact answers there are those of the saved adapter, loaded again, and of the base alone, on articles that the
    training did not see. A killed run resumes from its last checkpoint when started again.

    Raises DataError if SQuAD's folder is missing, LoadError if the base cannot be loaded.
    """
    call = TrainingCall.now(command)
    learned, held_out = articles("train"), articles("test")
    folder = Path(base) if os.path.isdir(base) else base_weights.fetch(base, settings.progress)
    known = base_identity(base)
    identity = {
        **known,
        # Prompts are made with the base's chat template, which `known` does not include.
        TOKENIZER: digest_of([known[TOKENIZER], read_tokenizer(folder).chat_template]),
        DATA: digest_of([asdict(one) for one in (*learned, *held_out)]),
        SETTINGS: digest_of(determining(settings)),
    }
    with training_in(out, ANSWERS, identity):
        losses = _fit(_writer(folder), learned, settings, out, digest_of(identity)).losses
        card: dict[str, Any] = {
            "base": base_entry(base)["name"],
            "base_sha256": base_entry(base)["sha256"],
            "template": TEMPLATE,
            "settings": determining(settings),
            "steps": len(losses),
            "final_loss": round(final_loss(losses), 4),
            **run_notes(call),
            "exact": _measured(folder, out, held_out_questions(held_out, settings.test_limit), settings),
        }
        disk.write_whole(out / "README.md", _page(card))
        # Written last: an adapter with a card is finished.
        disk.write_whole(out / zoo.CARD, json.dumps(card, indent=2) + "\n")
        disk.remove(out / CHECKPOINT_FILE)
    return card


def adapted(model: PreTrainedModel, settings: AnswersSettings) -> AnswerLogits:
    """The model with low-rank adapters on its attention, which are all that training changes."""
    from peft import LoraConfig, TaskType, get_peft_model

    config = LoraConfig(
        task_type=TaskType.CAUSAL_LM, r=settings.rank, lora_alpha=2 * settings.rank, target_modules=list(TARGETS)
    )
    base = model.to(torch.bfloat16) if settings.half else model  # type: ignore[arg-type]
    with quiet(), drawing(settings.seed):
        return AnswerLogits(get_peft_model(base, config))


def held_out_questions(held_out: tuple[Article, ...], limit: int) -> dict[str, list[KnownSources]]:
    """The questions on which the card's shares of exact answers are measured, by name. Shorter articles have fewer
    passages.
    """
    passages = {
        f"{others + 1} passages": among_others(held_out, Passages(others, SENTENCES), seed=1) for others in OTHERS
    }
    facts = {
        "made-up facts": planted("single", 4, seed=HELD_OUT_FACTS),
        "combined facts": planted("combined", 4, seed=HELD_OUT_FACTS),
    }
    limited = {name: list(islice(known, limit)) for name, known in (passages | facts).items()}
    return {name: questions for name, questions in limited.items() if questions}


def exact(writer: Generator, known: KnownSources) -> bool:
    """Whether the model's own answer is the known one, ignoring case, articles and punctuation."""
    filled = find(TEMPLATE).fill(known.sources, known.question)
    output = writer.continuation(writer.prompt(Chat(({"role": "user", "content": filled.text},))), _LONGEST)
    return same_answer(output.text, known.answer)


def _writer(folder: Path, adapter: Path | None = None) -> Generator:
    model, tokenizer = zoo.language_model(folder, adapter)
    return Generator(model, tokenizer, folder.name)


def _fit(
    writer: Generator, learned: tuple[Article, ...], settings: AnswersSettings, out: Path, identity: str
) -> History:
    groups = sum(1 for _ in readings(learned, settings.fewest, settings.most, settings.questions, settings.seed))
    batches = ReadingBatches(writer, learned, settings, round(groups * (1 + settings.planted)))
    plan = TrainSettings(
        epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        seed=settings.seed,
        checkpoint=out / CHECKPOINT_FILE,
        checkpoint_every=settings.checkpoint_every,
        identity=identity,
        progress=settings.progress,
    )
    module = adapted(writer.core, settings)
    stop = None
    if settings.stop_after is not None:
        stop = Evaluation(lambda _: {"stopped": 0.0}, settings.stop_after, stop=lambda _: True)
    history = fit(plan, module, batches, NextTokens(), stop)
    save_adapter(out, module.model, writer.name)
    return history


def _measured(
    folder: Path, out: Path, by_name: dict[str, list[KnownSources]], settings: AnswersSettings
) -> dict[str, dict[str, float]]:
    """Shares of exact answers, of the trained model and of its base alone."""
    writers = {"trained": _writer(folder, out), "base": _writer(folder)}
    total = len(writers) * sum(map(len, by_name.values()))
    with progress_bar("held-out questions", total, settings.progress) as advance:

        def share(writer: Generator, questions: list[KnownSources]) -> float:
            right = 0
            for known in questions:
                right += exact(writer, known)
                advance(1)
            return round(right / len(questions), 4)

        return {
            who: {name: share(writer, questions) for name, questions in by_name.items()}
            for who, writer in writers.items()
        }


def _page(card: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {name} | {share:.2f} | {card['exact']['base'][name]:.2f} |"
        for name, share in card["exact"]["trained"].items()
    )
    return f"""# A language model that answers from sources

LoRA adapter for `{card["base"]}`: it answers questions in the words of its sources (raison.cite, template `chat`).
Trained on passages of SQuAD 1.1 (CC BY-SA 4.0), and on made-up facts.

Shares of exact answers (but for case, articles and punctuation), {card["settings"]["test_limit"]} questions each,
about articles and facts that the training did not see:

| questions | trained | base |
| --- | --- | --- |
{rows}

```
{card["command"]}
```
"""
