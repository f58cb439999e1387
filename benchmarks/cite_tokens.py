"""Answers and their sources: how many tokens a causal model runs for masked prompts that share their beginnings.

Nothing is timed and no model is run: the tokens of plain passes are counted, one whole prompt with its answer for each
mask, which is context-cite's way, and the distinct beginnings of the same rows, each of which raison runs once. What a
pass over fewer tokens loses to its fixed cost is not in these numbers. context-cite also makes logits at every token.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import save

import raison
from raison.data.sourced import KnownSources, Passages, known_sources
from raison.explaining.answers import answers_of
from raison.models.adapters.writing.forced_answer import ForcedAnswer, Level
from raison.models.adapters.writing.generator import Generator
from raison.models.passes.prefixes.trie import leaves, merge

MODEL = "demo/smollm2-generation"
SQUAD = Path(__file__).parents[2] / "shared" / "data" / "squad"
QUESTIONS = 20
LOOKED_AT = 3000
WORDS = 500
"""Questions whose ten passages have at most so many words, about 750 tokens with the prompt on average."""
CURVE = (5, 10, 20, 40)
CURVE_QUESTIONS = 5

Draw = Callable[[int], np.ndarray]
"""Keeps of some number of units."""


def answered(writer: Generator, known: KnownSources) -> ForcedAnswer:
    return ForcedAnswer(writer, answers_of(writer, [known.to_dict()]).answers[0])


def tokens(answer: ForcedAnswer, unit: str, draw: Draw) -> tuple[int, int]:
    """The tokens of plain passes, and of the tree of their distinct beginnings."""
    level = Level.of(answer.answered, unit)
    prompt, output = answer.answered.source.prompt.ids, answer.answered.output.ids
    owners = answer.encoding.unit_ids[0, : len(prompt)].tolist()
    rows = []
    for keep in level.pieces(draw(len(level.units))):
        kept = [token for token, piece in zip(prompt, owners, strict=True) if piece < 0 or keep[piece]]
        rows.append((*kept, *output))
    shared = sorted({rows[number] for number in leaves(rows)})
    return sum(map(len, rows)), len(merge(shared).tokens)


def row(what: str, answers: list[ForcedAnswer], unit: str, draw: Draw) -> dict[str, object]:
    """Means over the questions."""
    counted = np.array([tokens(answer, unit, draw) for answer in answers], dtype=float)
    level = [Level.of(answer.answered, unit) for answer in answers]
    return {
        "masked prompts": what,
        "questions": len(answers),
        "prompt's tokens": round(float(np.mean([len(answer.answered.source.prompt.ids) for answer in answers]))),
        "units": round(float(np.mean([len(own.units) for own in level])), 1),
        "plain tokens": round(counted[:, 0].mean()),
        "tokens run": round(counted[:, 1].mean()),
        "plain / run": float((counted[:, 0] / counted[:, 1]).mean()),
        "64 plain ablations / run": "",
    }


def random(ablations: int) -> Draw:
    return lambda units: np.random.default_rng(0).random((ablations, units)) < 0.5


def one_out(units: int) -> np.ndarray:
    return ~np.eye(units, dtype=bool)


def main() -> None:
    writer = raison.load(MODEL)
    asked = known_sources("squad", LOOKED_AT, Passages(9, 3), part="train", folder=SQUAD)
    short = [known for known in asked if sum(len(text.split()) for text in known.sources.values()) <= WORDS]
    ten = [answered(writer, known) for known in short[:QUESTIONS]]
    rows = [row(f"10 sources, {m} random ablations of sentences", ten, "sentence", random(m)) for m in (64, 32, 16)]
    rows.append(row("10 sources, each sentence left out", ten, "sentence", one_out))
    rows.append(row("10 sources, each left out", ten, "part", one_out))
    plain = rows[0]["plain tokens"]
    for one in rows:
        one["64 plain ablations / run"] = plain / one["tokens run"]  # type: ignore[operator]
    for sources in CURVE:
        passages = known_sources("squad", CURVE_QUESTIONS, Passages(sources - 1, 3), folder=SQUAD)
        answers = [answered(writer, known) for known in passages]
        rows.append(row(f"{sources} sources, each left out", answers, "part", one_out))
        rows.append(row(f"{sources} sources, 64 random ablations of sentences", answers, "sentence", random(64)))
    save("cite_tokens", rows)


if __name__ == "__main__":
    sys.exit(main())
