"""The same work by this version of the library and by another one, in turns: `python versions.py --against SRC`.

SRC is the `src` folder of another checkout. This version has two processes and the other one has one, with one thread
each, that load demo/sst2 once. They work one after the other, in changing order, so that a drift of the machine's speed
meets all alike; what is measured is the processor time of the process, which other work on the machine disturbs little.
A ratio above 1 means that this version takes longer; the ratio of its two processes shows what chance does.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from common import mixed_texts, save, seconds

import raison

MODEL = "demo/sst2"
TEXTS, KEEPS, ROUNDS = 16, 32, 7
METHODS = (
    "saliency",
    "input_x_gradient",
    "integrated_gradients(steps=20)",
    "sequential_integrated_gradients(steps=5)",
    "deep_lift",
    "attn_lrp",
    "decompx",
    "attention_rollout",
    "rpi(baselines=4, steps=5)",
    "occlusion",
    "kernel_shap(samples=64)",
    "lime(samples=64)",
    "value_zeroing",
)
SLOW = {"sequential_integrated_gradients(steps=5)": 6, "value_zeroing": 3, "decompx": 2, "rpi(baselines=4, steps=5)": 2}
"""Explained on one of so many texts."""


def works() -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    model = raison.load(MODEL)
    texts = mixed_texts(TEXTS)
    encoding = model.encode(texts, "word")
    generator = torch.Generator().manual_seed(0)
    keeps = [torch.rand(KEEPS, count, generator=generator) < 0.5 for count in encoding.unit_counts]
    masked = {f"masked texts, {how}": partial(model.masked_logits, encoding, keeps, how) for how in ("mask", "delete")}
    explained = {
        method: partial(raison.explain, model, texts[:: SLOW.get(method, 1)], method, unit="token", progress=False)
        for method in METHODS
    }
    return {**masked, **explained}


def answer() -> None:
    """Do what standard input names, a line each, and say the processor time that it took."""
    torch.set_num_threads(1)
    known = works()
    for work in known.values():
        work()
    print(json.dumps([*known]), flush=True)
    for line in sys.stdin:
        print(seconds(known[line.strip()], time.process_time), flush=True)


class Version:
    """A process with one version of the library."""

    def __init__(self, source: str) -> None:
        command = [sys.executable, __file__, "--answer"]
        kept = os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, env=kept, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.works: list[str] = json.loads(self._line())

    def took(self, work: str) -> float:
        """Seconds of one work."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{work}\n")
        self._process.stdin.flush()
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def in_turn(versions: list[Version], work: str, turn: int) -> list[float]:
    """What the work takes each of them; another one begins in each turn."""
    order = [(turn + place) % len(versions) for place in range(len(versions))]
    found = {number: versions[number].took(work) for number in order}
    return [found[number] for number in range(len(versions))]


def ratio(found: np.ndarray) -> str:
    """The median of the rounds, and their quartiles."""
    low, middle, high = np.percentile(found, (25, 50, 75))
    return f"{middle:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    """Medians of the rounds, and the quartiles of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answer", action="store_true")
    parser.add_argument("--against", default=str(Path(raison.__file__).parents[1]))
    options = parser.parse_args()
    if options.answer:
        answer()
        return
    own = str(Path(raison.__file__).parents[1])
    versions = [Version(own), Version(own), Version(options.against)]
    rows: list[dict[str, object]] = []
    for work in versions[0].works:
        times = np.array([in_turn(versions, work, turn) for turn in range(ROUNDS)])
        this, again, other = times.T
        rows.append(
            {
                "work": work,
                "seconds": float(np.median(this)),
                "to the other": ratio((this + again) / (2 * other)),
                "to itself": ratio(again / this),
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    save("versions", rows)


if __name__ == "__main__":
    main()
