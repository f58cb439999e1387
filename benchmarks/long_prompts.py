"""Memory and time of DeepLIFT by the prompt's length, and what is said before, for one token that SmolLM2 writes.

Each line is a process of its own, which cites the one source of a prompt. Memory is how far the resident set grows
above what it was just before, at its peak. `whole` keeps what every layer needs for the way back, as all passes of
fewer than 256 tokens do; `recomputed` keeps the states between layers, computes each layer once more, and its attention
in blocks. What estimate_cite says is asked for afterwards in the same process, on the wall's clock.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

import torch
from common import save

import raison
from raison.judging.citing import estimate_cite
from raison.models.adapters.writing.generator import Generator
from raison.models.gradients.rules import ruled_gradients

MODEL = "demo/smollm2-generation"
METHOD = "deep_lift"
How = Literal["whole", "recomputed"]
LINES: tuple[tuple[How, int], ...] = (
    *(("whole", tokens) for tokens in (150, 300, 600)),
    *(("recomputed", tokens) for tokens in (300, 600, 1200, 2000)),
)
SENTENCE = "The old sailor told a modest story about the sea. "
QUESTION = "Who told a story?"
OTHERS = 60
"""Tokens of the prompt beside those of its source, about."""


def source_of(writer: Generator, tokens: int) -> str:
    """Sentences that make a prompt of about so many tokens."""
    each = len(writer.prompt(SENTENCE * 11).ids) - len(writer.prompt(SENTENCE).ids)
    return (SENTENCE * round(10 * (tokens - OTHERS) / each)).strip()


def resident(what: Literal["VmRSS", "VmHWM"]) -> float:
    """MiB now, or at the peak since it was last reset."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[what].split()[0]) / 1024


def measured(how: How, tokens: int) -> dict[str, object]:
    """A line of the table, in this process."""
    torch.set_num_threads(1)
    writer = raison.load(MODEL)
    assert isinstance(writer, Generator)
    given: dict[str, Any] = {"answer": "The", "method": METHOD, "within": "source", "draws": 0}
    raison.cite(writer, QUESTION, {"one": SENTENCE}, **given)
    if how == "whole":
        ruled_gradients.LONG = sys.maxsize
    sources = {"one": source_of(writer, tokens)}
    # Linux: the peak is from now on.
    Path("/proc/self/clear_refs").write_text("5")
    before, worked, started = resident("VmRSS"), time.process_time(), time.perf_counter()
    c = raison.cite(writer, QUESTION, sources, **given)
    worked, took, peak = time.process_time() - worked, time.perf_counter() - started, resident("VmHWM")
    started = time.perf_counter()
    said = estimate_cite(writer, QUESTION, sources, **given)
    return {
        "method": METHOD,
        "layers": how,
        "tokens": said.tokens,
        "MiB": round(peak - before),
        "said MiB": round(said.batch_bytes / 2**20),
        "processor seconds": round(worked, 1),
        "seconds": round(took, 1),
        "said seconds": round(said.seconds, 1),
        "seconds to say it": round(time.perf_counter() - started, 1),
        "score": c.scores[0][0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--line", type=int)
    line = parser.parse_args().line
    if line is not None:
        print(json.dumps(measured(*LINES[line])))
        return
    rows = []
    for number in range(len(LINES)):
        command = [sys.executable, __file__, "--line", str(number)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(rows[-1], flush=True)
    save("long_prompts", rows)


if __name__ == "__main__":
    main()
