"""Writes facts.jsonl: questions about made-up facts that a model answers right, with their sources.

    python studies/cite_sources/questions.py [MODEL]

Claims are about answers that rest on the sources; an answer that is wrong may rest on anything.
"""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from raison.models.adapters.generator import Generator

import raison
from raison.data.sourced import KnownSources
from raison.data.sourced.planted import planted
from raison.training.recipes.answers import exact

COUNT, OTHERS, SEED = 12, 4, 2
"""Neither a training nor a card's test has questions of this seed."""
TRIED = 100


def right(writer: Generator) -> Iterator[tuple[int, KnownSources]]:
    """The questions that are answered right, and how many were asked until then."""
    for number, known in enumerate(islice(planted("single", OTHERS, SEED), TRIED), 1):
        if exact(writer, known):
            yield number, known


def main(model: str = "demo/smollm2-answers") -> None:
    found = list(islice(right(raison.load(model)), COUNT))
    lines = [json.dumps({"number": number, **known.to_dict()}) for number, known in found]
    path = Path(__file__).with_name("facts.jsonl")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.stdout.write(f"{path}: {len(found)} of the first {found[-1][0]} questions are answered right\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
