"""ContextCite with fewer ablations against context-cite's way: their linear datamodeling scores, and their time.

    python benchmarks/cite.py            collects log-probabilities, and makes the table of scores
    python benchmarks/cite.py --time     the table of times

Questions of SQuAD about articles that the model was not trained on, with ten sources of three sentences; what is
explained is the model's own answer.

context-cite 0.0.4 runs each of 64 masked prompts whole, one at a time and without a cache, and fits with a penalty of
0.01. The linear datamodeling score is the rank correlation of the sums of a way's scores with the answer's
log-probability, over 32 random removals that no way saw. These log-probabilities are computed in bfloat16, the same
ones for all ways; ways with fewer random ablations use the first of them. `paired` has each ablation's complement as
well, `orthogonal` columns of a Walsh matrix. The rule for the penalty (alpha=None) was chosen on the first CHOSEN
questions, and is judged on the others.

Time is processor time of this process in float32, in turns. Every question is kept in results/cite.jsonl as soon as it
is known, and a run that was stopped goes on.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import sqrt
from typing import Any

import numpy as np
import torch
from common import RESULTS, alternately, recorded, save
from passages import short_questions
from scipy.stats import spearmanr

import raison
from raison.explaining.answers import answers_of
from raison.explaining.attribution import run
from raison.explaining.batch import prepare_stated
from raison.explaining.settings import Settings
from raison.methods import CATALOGUE
from raison.models.adapters.writing.forced_answer import ForcedAnswer, Level
from raison.models.adapters.writing.generator import Generator
from raison.models.adapters.writing.statements import Statements
from raison.models.tokens.written_answer import WrittenAnswer
from raison.numerics.perturbation.lasso import lasso
from raison.numerics.statistics.paired import difference

MODEL, DTYPE = "demo/smollm2-answers", "bfloat16"
OTHERS, SENTENCES, PARAGRAPHS = 9, 3, 14
UNITS = (OTHERS + 1) * SENTENCES
QUESTIONS, PLAIN, HELD_OUT = 24, 64, 32
CHOSEN = 9
"""Questions on which the rule for the penalty was chosen."""
TIMED = range(CHOSEN, CHOSEN + 3)
FEW = (16, 20, 24)
OTHER_METHODS, METHODS = 8, ("occlusion", "hierarchical_occlusion", "kernel_shap(samples=32)")
RECORDS = RESULTS / "cite.jsonl"

Keeps = np.ndarray
"""(ablations, sentences), booleans."""


def random_keeps(rng: np.random.Generator, count: int) -> Keeps:
    return rng.random((count, UNITS)) < 0.5


def paired(keeps: Keeps) -> Keeps:
    """Each keep and what it removes."""
    return np.stack([keeps, ~keeps], 1).reshape(-1, keeps.shape[1])


def walsh(rng: np.random.Generator, bits: int = 5) -> Keeps:
    """Orthogonal columns, in an order in which sentence number c needs 2 ** (its bits) beginnings."""
    rows = (np.arange(1 << bits)[:, None] >> np.arange(bits)[::-1]) & 1
    columns = [rows[:, [bit for bit in range(bits) if c >> bit & 1]].sum(1) % 2 for c in range(1, UNITS + 1)]
    return (np.stack(columns, 1) == 1) ^ (rng.random(UNITS) < 0.5)


def designs(number: int) -> dict[str, Keeps]:
    """The ablations of a question by name."""
    rngs = [np.random.default_rng((number, own)) for own in range(3)]
    plain = random_keeps(rngs[1], PLAIN)
    return {
        "held out": random_keeps(rngs[0], HELD_OUT),
        "random": plain,
        "complements": ~plain[:16],
        "walsh": walsh(rngs[2]),
    }


def plain_loop(writer: Generator, forced: ForcedAnswer, keeps: Keeps) -> np.ndarray:
    """The log-odds of each token of the answer after each masked prompt, one whole pass each."""
    prompt, output = forced.answered.source.prompt.ids, forced.answered.output.ids
    owners = forced.encoding.unit_ids[0, : len(prompt)].tolist()
    found = []
    for keep in keeps:
        ids = [token for token, unit in zip(prompt, owners, strict=True) if unit < 0 or keep[unit]]
        with torch.no_grad():
            logits = writer.core(torch.tensor([[*ids, *output]])).logits[0, len(ids) - 1 : -1].double()
        chosen = logits.log_softmax(-1).gather(1, torch.tensor(output)[:, None])[:, 0]
        found.append(chosen - torch.log1p(-chosen.exp()))
    return torch.stack(found).numpy()


def total(odds: np.ndarray) -> list[float]:
    """The log-probability of the whole answer."""
    found: list[float] = (-np.logaddexp(0, -odds)).sum(1).round(4).tolist()
    return found


def measured(writer: Generator, answered: WrittenAnswer, number: int) -> dict[str, object]:
    """Log-probabilities of the answer, and scores of methods that choose their own ablations."""
    level = Level.of(answered, "sentence")
    assert len(level.units) == UNITS
    started = time.process_time()
    model = Statements(writer, [answered])
    forced = model.forced(answered.texts, "sentence")
    drawn = designs(number)
    found = total(forced.log_odds(level.pieces(np.concatenate([*drawn.values()])), "delete"))
    values, at = {}, 0
    for name, keeps in drawn.items():
        values[name] = found[at : at + len(keeps)]
        at += len(keeps)
    scores = {}
    if number < OTHER_METHODS:
        batch = prepare_stated(model, [answered.texts], Settings("sentence", of="log_probability"))
        for name in METHODS:
            scores[name] = [round(score, 4) for score in run(batch, CATALOGUE.create(name))[0].scores]
    return {
        "tokens": len(answered.source.prompt.ids),
        "output": len(answered.output.ids),
        "values": values,
        "scores": scores,
        "seconds": round(time.process_time() - started, 1),
    }


def collect() -> None:
    """What is not known yet of each question."""
    writer = raison.load(MODEL, dtype=DTYPE)
    assert isinstance(writer, Generator)
    for number, answered in numbered(writer):
        if number not in recorded(RECORDS):
            record = {"question": number, **measured(writer, answered, number)}
            with RECORDS.open("a") as lines:
                lines.write(json.dumps(record) + "\n")


def numbered(writer: Generator) -> "list[tuple[int, WrittenAnswer]]":
    """The questions with the model's own answers."""
    found = []
    for number, known in enumerate(islice(short_questions(OTHERS, SENTENCES, PARAGRAPHS), QUESTIONS)):
        row = known.to_dict()
        row.pop("answer")
        found.append((number, answers_of(writer, [row]).answers[0]))
    return found


@dataclass(frozen=True, slots=True)
class Way:
    """So many ablations of a design, and the penalty; None: fitted to them."""

    ablations: int
    design: str = "random"
    alpha: float | None = None

    def score(self, record: Mapping[str, Any]) -> float:
        """The linear datamodeling score on a question."""
        drawn = designs(record["question"])
        keeps, values = self._seen(drawn, record["values"])
        odds = (values - np.log(-np.expm1(np.minimum(values, -1e-9)))) / record["output"]
        alpha = float(odds.std()) / sqrt(len(odds)) if self.alpha is None else self.alpha
        scores = lasso(keeps, odds, alpha).coefficients
        expected = drawn["held out"] @ scores
        # No score says nothing of any removal.
        return float(spearmanr(expected, record["values"]["held out"]).statistic) if np.ptp(expected) else 0.0

    def _seen(self, drawn: Mapping[str, Keeps], values: Mapping[str, list[float]]) -> tuple[Keeps, np.ndarray]:
        if self.design == "paired":
            half = self.ablations // 2
            both = (
                [drawn["random"][:half], drawn["complements"][:half]],
                [values["random"][:half], values["complements"][:half]],
            )
            return np.concatenate(both[0]), np.concatenate(both[1])
        name = "walsh" if self.design == "orthogonal" else "random"
        order = np.random.default_rng(0).permutation(len(drawn[name])) if name == "walsh" else np.arange(PLAIN)
        chosen = order[: self.ablations]
        return drawn[name][chosen], np.array(values[name])[chosen]


BEFORE = Way(PLAIN, alpha=0.01)
WAYS = (
    BEFORE,
    *(Way(count, alpha=0.01) for count in (16, 32)),
    *(Way(count) for count in (8, 12, 16, 20, 24, 32, 64)),
    *(Way(count, design) for design in ("paired", "orthogonal") for count in (16, 32)),
)


def tabulate() -> None:
    """The scores of all ways on the questions that the rule was not chosen on, minus those of context-cite's way."""
    records = [record for number, record in sorted(recorded(RECORDS).items()) if number >= CHOSEN]
    scores = {way: np.array([[way.score(record)] for record in records]) for way in WAYS}
    rows: list[dict[str, object]] = []
    for way, found in scores.items():
        gap = difference(found, scores[BEFORE])
        rows.append(
            {
                "ablations": way.ablations,
                "design": way.design,
                "alpha": "fitted" if way.alpha is None else way.alpha,
                "questions": len(found),
                "score": round(float(found.mean()), 3),
                "minus context-cite's": "" if way == BEFORE else f"{gap.mean:+.3f} [{gap.low:.3f}, {gap.high:.3f}]",
            }
        )
    save("cite", rows)


def measure_times() -> None:
    """Context-cite's way in processor time, and raison's with fewer ablations, on a few questions."""
    writer = raison.load(MODEL)
    assert isinstance(writer, Generator)
    rows: list[dict[str, object]] = []
    for number, answered in numbered(writer):
        if number in TIMED:
            rows.append(
                {"question": number, "tokens": len(answered.source.prompt.ids), **times(writer, answered, number)}
            )
            save("cite_times", rows)


def times(writer: Generator, answered: WrittenAnswer, number: int) -> dict[str, object]:
    """Of one question, all ways in turn; and how far log-probabilities are from those of plain passes."""
    keeps = designs(number)["random"]
    pieces = Level.of(answered, "sentence").pieces(keeps)

    def plainly() -> None:
        lasso(keeps, plain_loop(writer, ForcedAnswer(writer, answered), pieces).sum(1), 0.01)

    # Removed words go, and leave no mark, as in `cite`.
    asked = Settings("sentence", of="log_odds", removal="delete")

    def ours(count: int) -> None:
        batch = prepare_stated(Statements(writer, [answered]), [answered.texts], asked)
        run(batch, CATALOGUE.create(f"context_cite(ablations={count}, alpha=None, resamples=0)"))

    works: dict[str, Callable[[], object]] = {"context-cite's way": plainly}
    works |= {f"{count} ablations": partial(ours, count) for count in FEW}
    seconds = alternately(works, 1, time.process_time)
    plain = plain_loop(writer, ForcedAnswer(writer, answered), pieces[:8])
    together = ForcedAnswer(writer, answered).log_odds(pieces[:8], "delete")
    ratios = {
        f"{count} faster": round(seconds["context-cite's way"] / seconds[f"{count} ablations"], 2) for count in FEW
    }
    difference_of = float(np.abs(np.logaddexp(0, -together) - np.logaddexp(0, -plain)).max())
    return {
        **{f"{name} (s)": round(value, 1) for name, value in seconds.items()},
        **ratios,
        "largest difference of a log-probability": difference_of,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--time", action="store_true")
    torch.set_num_threads(1)
    if parser.parse_args().time:
        measure_times()
    else:
        collect()
        tabulate()


if __name__ == "__main__":
    main()
