"""Memory and time of DeepLIFT by the prompt's length, for one token that SmolLM2 would write.

Each line is a process of its own. Memory is the peak of the resident set above that of the loaded model, time that of
the process. `whole` keeps what every layer needs for the way back, as all passes of fewer than 256 tokens do;
`recomputed` keeps the states between layers, computes each layer once more, and its attention in blocks.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Literal

import torch
from common import save

import raison
from raison.models.adapters.writing.generator import Generator
from raison.models.gradients.rules import ruled_gradients

MODEL = "demo/smollm2-generation"
METHOD = "deep_lift"
How = Literal["whole", "recomputed"]
LINES: tuple[tuple[How, int], ...] = (
    *(("whole", tokens) for tokens in (300, 600)),
    *(("recomputed", tokens) for tokens in (300, 600)),
)
SENTENCE = "The old sailor told a modest story about the sea. "


def prompt_of(writer: Generator, tokens: int) -> str:
    """Sentences of about so many tokens."""
    each = len(writer.prompt(SENTENCE * 11).ids) - len(writer.prompt(SENTENCE).ids)
    return (SENTENCE * round(10 * tokens / each)).strip()


def peak() -> float:
    """MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(how: How, tokens: int) -> dict[str, object]:
    """A line of the table, in this process."""
    torch.set_num_threads(1)
    writer = raison.load(MODEL)
    assert isinstance(writer, Generator)
    prompt = prompt_of(writer, tokens)
    raison.explain(writer, SENTENCE, METHOD, output=" The", unit="sentence", progress=False)
    if how == "whole":
        ruled_gradients.LONG = sys.maxsize
    loaded, started = peak(), time.process_time()
    e = raison.explain(writer, prompt, METHOD, output=" The", unit="sentence", progress=False)
    return {
        "method": METHOD,
        "layers": how,
        "tokens": len(writer.prompt(prompt).ids),
        "MiB": round(peak() - loaded),
        "seconds": round(time.process_time() - started, 1),
        "largest score": max(e.scores[0], key=abs),
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
