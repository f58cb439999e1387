"""Is a text of many words better explained from coarse to fine, when there are fewer passes than words?

`kernel_shap` with the estimator that has the smallest error at so few passes, and `coarse_to_fine`, on reviews
of IMDb cut to so many words, by demo/imdb. Faithful is what an audit means by it: AOPC comprehensiveness minus AOPC
sufficiency, text by text. combining/evidence.json takes from this table how many words there have to be for a pass
where method="auto" goes from coarse to fine. `--words 40,60 --passes 25` measures some lines again and keeps others.
"""

import argparse
import json

import numpy as np
from common import RESULTS, save

import raison
from raison.core.results.scores import Scores
from raison.numerics.statistics.paired import difference

TEXTS = 24
LINES = ((20, 50), (20, 25), (40, 25), (160, 100), (60, 25))
"""Words and passes."""
SAMPLED = "kernel_shap(samples={}, estimator='gaussian_process')"
HALVED = "coarse_to_fine(samples={})"
COUNTS = ("aopc_comprehensiveness", "aopc_sufficiency")


def faithfulness(row: Scores) -> np.ndarray:
    """Of each text, (texts, 1)."""
    pairs = zip(*(row[count].values for count in COUNTS), strict=True)
    return np.array([[more - less] for more, less in pairs])


def measured(words: int, passes: int) -> dict[str, object]:
    """A line of the table."""
    model = raison.load("demo/imdb")
    reviews = raison.data.load("imdb", split="test", limit=400).texts
    texts = [" ".join(text.split()[:words]) for text in reviews if len(text.split()) >= words][:TEXTS]
    table = raison.compare(model, texts, [SAMPLED.format(passes), HALVED.format(passes)], COUNTS, progress=False)
    rows = {row.method.partition("(")[0]: faithfulness(row) for row in table.rows}
    gap = difference(rows["coarse_to_fine"], rows["kernel_shap"])
    return {
        "words": words,
        "passes": passes,
        "texts": len(texts),
        **{name: round(float(values.mean()), 3) for name, values in rows.items()},
        "gap": round(gap.mean, 3),
        "low": round(gap.low, 3),
        "high": round(gap.high, 3),
    }


def main() -> None:
    """Each line that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words")
    parser.add_argument("--passes", type=int)
    asked = parser.parse_args()
    place = RESULTS / "few_passes.json"
    known = json.loads(place.read_text(encoding="utf-8"))["rows"] if place.exists() else []
    lines = {(row["words"] / row["passes"], row["passes"]): row for row in known}
    wanted = LINES if asked.words is None else [(int(words), asked.passes) for words in asked.words.split(",")]
    for words, passes in wanted:
        lines[words / passes, passes] = measured(words, passes)
        save("few_passes", [lines[place] for place in sorted(lines)])


if __name__ == "__main__":
    main()
