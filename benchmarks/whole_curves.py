"""Is a method of one pass as faithful as kernel_shap by whole curves, with words masked in place?

The studies that method="auto" rests on delete at most half of a text's words. Here words are masked, as kernel_shap
masks them, and all of them, one after the other: the probability while the most important words are put in
(activation_auc) minus that while they are taken out (inverse_activation_auc), text by text, on whole sentences.
docs/evidence.py leaves out what is behind here.
"""

import random

import numpy as np
from common import save

import raison
from raison.core.results.scores import Scores
from raison.numerics.statistics.paired import difference

DATA = {"sst2": ("sst2", "dev"), "rotten_tomatoes": ("mr", "test"), "emotion": ("emotion", "test")}
"""By demo model: the data set and the split."""
TEXTS, SHORTEST, LOOKED_AT = 24, 14, 400
BASE = "kernel_shap(samples=100)"
ONE_PASS = ("decompx", "deep_lift")
CURVES = ("activation_auc", "inverse_activation_auc")


def texts_of(source: str, split: str) -> list[str]:
    """Some sentences of at least so many words, in random order."""
    known = [text for text in raison.data.load(source, split=split, limit=LOOKED_AT).texts if isinstance(text, str)]
    random.Random(11).shuffle(known)
    return [text for text in known if len(text.split()) >= SHORTEST][:TEXTS]


def between_curves(row: Scores) -> np.ndarray:
    """Of each text, (texts, 1)."""
    pairs = zip(*(row[curve].values for curve in CURVES), strict=True)
    return np.array([[more - less] for more, less in pairs])


def measured(name: str) -> list[dict[str, object]]:
    """A line for each method of one pass."""
    model, texts = raison.load(f"demo/{name}"), texts_of(*DATA[name])
    table = raison.compare(model, texts, [BASE, *ONE_PASS], CURVES, progress=False)
    rows = {row.method: between_curves(row) for row in table.rows}
    found: list[dict[str, object]] = []
    for method in ONE_PASS:
        gap = difference(rows[method], rows[BASE])
        means = {method: round(float(rows[method].mean()), 3), BASE: round(float(rows[BASE].mean()), 3)}
        numbers = {"gap": round(gap.mean, 3), "low": round(gap.low, 3), "high": round(gap.high, 3)}
        line = {"model": f"demo/{name}", "texts": len(texts), "method": method, "own": means[method]}
        found.append(line | {"kernel_shap": means[BASE]} | numbers)
    return found


def main() -> None:
    """All models, written after each."""
    rows: list[dict[str, object]] = []
    for name in DATA:
        rows += measured(name)
        save("whole_curves", rows)


if __name__ == "__main__":
    main()
