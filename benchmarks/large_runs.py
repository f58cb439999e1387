"""What a comparison of many texts takes: time and memory of running it in a folder, and of opening it again.

    python benchmarks/large_runs.py [--texts 1000,10000,100000] [--out benchmarks/results/large_runs]

A tiny BERT with random weights and the row of random scores, so that the model takes next to nothing and what remains
is the library's own work. Each measurement is a process of its own; memory is the highest resident size of it.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()


def measured(texts: int, folder: str) -> dict[str, float]:
    """One comparison, in this process: seconds, and megabytes above what imports, model and texts take."""
    import raison
    from tests.tiny import TINY

    model = raison.load(*TINY["bert"]())
    given = [" ".join(WORDS[i % 5 : i % 5 + 3 + i % 9]) for i in range(texts)]
    raison.compare(model, given[:32], ["random"], ["gini"], progress=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started = time.perf_counter()
    raison.compare(model, given, ["random"], ["gini"], out=folder, progress=False)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(seconds, 2), "peak_mb": round(peak), "grown_mb": round(peak - before)}


def apart(texts: int, folder: str) -> dict[str, float]:
    """`measured` in a process of its own."""
    command = [sys.executable, __file__, "--measure", str(texts), "--folder", folder]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", default="1000,10000,100000")
    parser.add_argument("--out", default="benchmarks/results/large_runs")
    parser.add_argument("--measure", type=int)
    parser.add_argument("--folder")
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measured(asked.measure, asked.folder)))
        return
    rows = []
    for texts in map(int, asked.texts.split(",")):
        with tempfile.TemporaryDirectory() as place:
            folder = str(Path(place) / "run")
            rows += [{"texts": texts, "what": what, **apart(texts, folder)} for what in ("running", "opening again")]
        print(json.dumps(rows[-2:]), flush=True)
    out = Path(asked.out)
    out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    lines = ["# Comparisons of many texts", "", (__doc__ or "").split("\n\n")[2].replace("\n", " ").strip(), ""]
    lines += [
        "| texts | | seconds | ms per text | peak memory (MB) | grown by (MB) |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {row['texts']:,} | {row['what']} | {row['seconds']:.2f} | {1000 * row['seconds'] / row['texts']:.2f} "
        f"| {row['peak_mb']:.0f} | {row['grown_mb']:.0f} |"
        for row in rows
    ]
    out.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
