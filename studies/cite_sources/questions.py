"""Writes the questions of cite_sources and cite_two_sources: those that a model answers right, with their sources.

    python studies/cite_sources/questions.py [SORT ...]

Claims are about answers that rest on the sources; an answer that is wrong may rest on anything. A question is written
as soon as it is answered right, and a run that was stopped goes on behind the last one. Passages of SQuAD (CC BY-SA
4.0) are those of articles that demo/smollm2-answers was not trained on.
"""

import json
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import raison
from raison.data.sourced import Passages, known_sources
from raison.models.adapters.writing.generator import Generator
from raison.training.recipes.answers import exact

MODEL = "demo/smollm2-answers"
SENTENCES = 2
"""Of a passage, at most, as on the model's card."""


@dataclass(frozen=True, slots=True)
class Sort:
    """So many questions of a sort of `known_sources`, of the first `tried` ones that `seed` draws."""

    name: str
    others: int
    count: int = 60
    tried: int = 200
    seed: int = 0
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    study: str = "cite_sources"


SORTS = {
    # Neither the 150 steps of the model's training nor its card's test have questions of this seed.
    "facts": Sort("planted_single", 4, count=32, tried=200, seed=2, dtype="float32"),
    "squad_5": Sort("squad", 4),
    "squad_10": Sort("squad", 9),
    "exchanged_5": Sort("squad_exchanged", 4),
    "exchanged_10": Sort("squad_exchanged", 9),
    "squad_20": Sort("squad", 19, count=16),
    "exchanged_20": Sort("squad_exchanged", 19, count=16),
    "combined": Sort("planted_combined", 4, seed=2, study="cite_two_sources"),
    "contradicting": Sort("planted_contradicting", 4, seed=2, study="cite_two_sources"),
    "copied": Sort("squad_copied", 4, count=12, study="cite_two_sources"),
    "near_copied": Sort("squad_near_copied", 4, study="cite_two_sources"),
}


def write(key: str) -> None:
    """The questions of a sort, into a file of that name, each with its number among those that were asked."""
    sort = SORTS[key]
    path = Path(__file__).parents[1] / sort.study / f"{key}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    last = json.loads(lines[-1])["number"] if lines else 0
    writer = raison.load(MODEL, dtype=sort.dtype)
    assert isinstance(writer, Generator)
    asked = known_sources(sort.name, sort.tried, Passages(sort.others, SENTENCES), seed=sort.seed)
    right = ((number, known) for number, known in enumerate(asked, 1) if number > last and exact(writer, known))
    for number, known in islice(right, sort.count - len(lines)):
        lines.append(json.dumps({"number": number, **known.to_dict()}))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        last = number
    sys.stdout.write(f"{path.name}: {len(lines)} of the first {last} questions are answered right\n")


if __name__ == "__main__":
    for key in sys.argv[1:] or SORTS:
        write(key)
