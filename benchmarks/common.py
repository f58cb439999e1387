"""What the benchmarks share: a real base model, texts of mixed length, and ratios measured in one run."""

import json
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import raison

if TYPE_CHECKING:
    from raison.models.adapters.classifier import Classifier

WORDS = (
    "the a of and to is it that this film movie plot story with for but not so too very quite rather never always "
    "good bad dull bright funny sad slow quick warm cold charming tedious clever silly honest hollow lovely awful "
    "actor scene ending dialogue music camera director audience script performance moment character surprise heart"
).split()
RESULTS = Path(__file__).parent / "results"


def minilm() -> "Classifier":
    """all-MiniLM-L6-v2 (6 layers of 384) with a random head of two classes: the speed does not depend on training."""
    # Imported here: other versions of the library, which some benchmarks compare with, have them elsewhere.
    from raison.models.adapters.classifier import Classifier
    from raison.models.loading.ready_made import base_weights, zoo

    model, tokenizer = zoo.fresh_classifier(base_weights.fetch("minilm"), ("negative", "positive"))
    loaded = raison.load(model, tokenizer)
    assert isinstance(loaded, Classifier)
    return loaded


def mixed_texts(count: int, seed: int = 0) -> list[str]:
    """Sentences of 5 to 60 words, about 20 on average, as in SST-2 and longer reviews."""
    rng = random.Random(seed)
    lengths = [max(5, min(60, round(rng.lognormvariate(2.9, 0.5)))) for _ in range(count)]
    return [" ".join(rng.choices(WORDS, k=length)) for length in lengths]


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Time of one call: on the wall, or with time.process_time of this process alone."""
    started = clock()
    work()
    return clock() - started


def alternately(
    works: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Median seconds of each, taken in turn so that a drift of the machine's speed meets all alike."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(seconds(work, clock))
    return {name: statistics.median(found) for name, found in times.items()}


def recorded(path: Path) -> dict[int, dict[str, Any]]:
    """The last line of JSON about each question; none of a file that is not there."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {record["question"]: record for record in map(json.loads, lines)}


def save(name: str, rows: list[dict[str, object]]) -> None:
    """Print a table and keep it as results/NAME.json and .md, with what it was measured on."""
    header = list(rows[0])
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += [
        "| " + " | ".join(f"{row[key]:.3g}" if isinstance(row[key], float) else str(row[key]) for key in header) + " |"
        for row in rows
    ]
    machine = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "processor": platform.machine(),
    }
    note = f"Measured with `python benchmarks/{Path(sys.argv[0]).name}` in one run: {machine}."
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n\n" + note + "\n")
    print("\n".join(lines))
