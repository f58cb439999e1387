"""Readings for a language model that answers from sources: many questions about the same passages in one pass."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor, nn

from raison.core.inputs.chat import Chat
from raison.data.sourced.articles import Article
from raison.data.sourced.passages import SourcedQuestions, readings
from raison.data.sourced.planted import PlantedKind, planted
from raison.models.adapters.writing.generator import Generator
from raison.models.passes.prefixes.trie import merge, sees
from raison.text.sourced import find
from raison.training.loop.objective import TrainingBatch
from raison.training.settings.answers import AnswersSettings

TEMPLATE = "chat"
"""The default of raison.cite for a tokenizer that has a template."""


@dataclass(frozen=True, slots=True)
class ReadingBatches:
    """Readings, one for each step, with new random passages in each epoch. Implements trainer.Batches."""

    writer: Generator
    articles: tuple[Article, ...]
    settings: AnswersSettings
    steps: int
    """The number of readings in every epoch."""

    def __len__(self) -> int:
        return self.steps

    def epoch(self, number: int, start: int = 0) -> Iterator[TrainingBatch]:
        """The readings of an epoch in an order that the seed draws."""
        settings = self.settings
        seed = settings.seed * 100_003 + number
        drawn = list(readings(self.articles, settings.fewest, settings.most, settings.questions, seed))
        made_up = round(settings.planted * self.steps / (1 + settings.planted))
        kinds: tuple[tuple[PlantedKind, int], ...] = (("single", made_up - made_up // 2), ("combined", made_up // 2))
        for kind, share in kinds:
            known = islice(planted(kind, others=6, seed=1 + seed), share)
            drawn += [SourcedQuestions(one.sources, ((one.question, one.answer),)) for one in known]
        order = torch.randperm(len(drawn), generator=torch.Generator().manual_seed(seed)).tolist()
        # The number of groups differs between epochs, but the number of steps must not.
        order = [order[place % len(order)] for place in range(self.steps)]
        for place in order[start:]:
            yield tree_batch(self.writer, drawn[place])


class AnswerLogits(nn.Module):
    """The trainer's view of a language model: a tree of token rows in, logits at the places that are read out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: dict[str, Tensor]) -> Float[Tensor, "reads vocabulary"]:
        positions = inputs["positions"]
        seen = sees(positions, inputs["ends"], 0, None)
        dtype = next(parameter.dtype for parameter in self.model.parameters() if not parameter.requires_grad)
        mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
        logits: Tensor = self.model(
            input_ids=inputs["tokens"][None],
            attention_mask=mask[None, None],
            position_ids=positions[None],
            logits_to_keep=inputs["reads"],
            use_cache=False,
        ).logits
        return logits[0].float()


def tree_batch(writer: Generator, reading: SourcedQuestions) -> TrainingBatch:
    """The prompts of a reading's questions, each with its answer, as one tree: common beginnings are run once."""
    rows = sorted(_row(writer, reading.sources, question, answer) for question, answer in reading.asked)
    # Nothing is predicted after the last token.
    trie = merge([ids[:-1] for ids, _ in rows])
    reads: list[int] = []
    labels: list[int] = []
    for (ids, first), path in zip(rows, trie.paths, strict=True):
        reads += path[first - 1 :]
        labels += ids[first:]
    numbers = {"tokens": trie.tokens, "positions": trie.depths, "ends": trie.ends, "reads": reads}
    return TrainingBatch({name: torch.tensor(values) for name, values in numbers.items()}, torch.tensor(labels))


def _row(writer: Generator, sources: dict[str, str], question: str, answer: str) -> tuple[tuple[int, ...], int]:
    """The tokens of a prompt, its answer and the end, and the place where the answer begins."""
    prompt = writer.prompt(Chat(({"role": "user", "content": find(TEMPLATE).fill(sources, question).text},)))
    end: int = writer.tokenizer.eos_token_id
    return (*prompt.ids, *writer.output(prompt, answer)[0].ids, end), len(prompt.ids)
